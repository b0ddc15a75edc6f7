"""What takes long to import and to read, for processes that are forked from one that has this module."""

from __future__ import annotations

import opconform.cli.session  # noqa: F401 - takes long to import
from opconform.cases.ids import Selection
from opconform.generators.selection import selected
from opconform.generators.source import GeneratedCases, shipped

WARM = [shipped().spec(operator) for operator in shipped().operators()]
"""The spec files, which the processes that are forked have read."""
PLANNED = sum(1 for _ in selected(GeneratedCases(), Selection(("onnx/ReduceMean-13",))))
"""What is cached of plans is theirs, too."""
