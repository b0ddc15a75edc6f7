"""What the scripts of `opconform show --script` judge by, without the libraries that they drive."""

from __future__ import annotations

import base64
import functools
import math
import zlib
from importlib import resources
from typing import Any

import numpy as np

from opconform.cases.batch import Option
from opconform.reports.script import _option, literal


@functools.cache
def judging_script() -> dict[str, Any]:
    """Return the names that a script has for judging."""
    text = (resources.files("opconform.reports") / "scripts" / "judge.py.txt").read_text(encoding="utf-8")
    script: dict[str, Any] = {"np": np, "base64": base64, "zlib": zlib}
    script |= {"erf": math.erf, "inf": math.inf, "nan": math.nan}
    exec(text.partition("\ndef main(")[0], script)
    return script


def read_option(option: Option) -> Any:
    """Return an option of a single case as a script reads it."""
    return eval(literal([_option(option)]), {"nan": np.nan, "inf": np.inf})[0]
