"""Names of a corpus's folders: they speak, and every file system can hold them."""

from __future__ import annotations

import re

from .program import Program

LONGEST = 80
"""The characters that the name of a program's folder may have."""

_DIGEST = 12
_UNSAFE = re.compile(r"[^A-Za-z0-9-]+")


def program_folder(program: Program) -> str:
    """Return the name of a program's folder, made from its content alone.

    `test_onnx_ReduceMean-13_float32_3x2x2_6f1c52a0b3d4`: letters, digits, `-` and `_`. It differs from every other
    program's in more than upper and lower case, by the first digits of the program's key. ONNX's loader wants `test_`.
    """
    parts = [
        str(program.operator),
        "-".join(dict.fromkeys(i.type for i in program.feeds)),
        "-".join(dict.fromkeys("x".join(map(_extent, i.dims)) or "scalar" for i in program.feeds)),
    ]
    slug = "_".join(_UNSAFE.sub("_", part).strip("_") for part in parts if part)
    begun = f"test_{slug}"[: LONGEST - _DIGEST - 1].rstrip("_-")
    return f"{begun}_{program.key[:_DIGEST]}"


def _extent(size: int | str) -> str:
    return "n" if isinstance(size, str) else str(size)
