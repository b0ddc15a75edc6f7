"""The package of OpenVINO without its telemetry, which sends data when it is imported, and forks to do so.

Importing this module imports it, so that a process which hosts are forked from can do so once. Raises NotInstalled.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from .base import imported

_TELEMETRY = "openvino_telemetry"


def _imported_silently() -> Any:
    modules: dict[str, Any] = sys.modules
    absent = _TELEMETRY not in modules
    if absent:
        modules[_TELEMETRY] = None
    try:
        return imported("openvino", "openvino")
    finally:
        if absent:
            del modules[_TELEMETRY]


PACKAGE: Final = _imported_silently()
