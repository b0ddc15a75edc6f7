"""Signatures of submissions: Ed25519, by keys that the user holds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..cases.errors import OpconformError
from ..cases.runner import NotInstalled

_EXPECTED = "expected an Ed25519 key in PEM without a password, as `openssl genpkey -algorithm ed25519` makes it"


def signed(content: bytes, key: Path) -> bytes:
    """Return the signature of `content` by the private key in a PEM file, in base64.

    Raises OpconformError if that is none, NotInstalled without the library.
    """
    keys, _ = _library()
    found = _loaded(key, lambda pem: keys.load_pem_private_key(pem, None))
    if type(found).__name__.find("Ed25519Private") < 0:
        raise OpconformError(f"{key}: {_EXPECTED}")
    return base64.b64encode(found.sign(content)) + b"\n"


def unsigned_reason(content: bytes, signature: bytes | None, key: Path | None) -> str | None:
    """Return why `content` is not signed by the public key in a PEM file; None if it is, or if no key is given."""
    if key is None:
        return None
    keys, invalid = _library()
    found = _loaded(key, keys.load_pem_public_key)
    if type(found).__name__.find("Ed25519Public") < 0:
        raise OpconformError(f"{key}: {_EXPECTED}, and `openssl pkey -pubout` its public part")
    if signature is None:
        return "none"
    try:
        found.verify(base64.b64decode(signature, validate=False), content)
    except (invalid, binascii.Error):
        return "not by this key, or of other content"
    return None


def _library() -> tuple[Any, type[Exception]]:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - only who signs needs it
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    except ModuleNotFoundError:
        raise NotInstalled(
            "signatures need cryptography, which is not installed: pip install 'opconform[sign]'"
        ) from None
    return serialization, InvalidSignature


def _loaded(key: Path, load: Callable[[bytes], Any]) -> Any:
    try:
        return load(key.read_bytes())
    except OSError as error:
        raise OpconformError(f"{key}: cannot be read: {error.strerror}") from None
    except Exception as error:  # the library raises of many kinds
        raise OpconformError(f"{key}: {_EXPECTED}: {error}") from None
