"""What OpenVINO is asked about its operations does not end its process."""

from __future__ import annotations

import pytest
from fakes.here import shipped

from opconform.runners.backends.library_reading import read_library
from opconform.specs.audit import LibrarySchema

pytest.importorskip("openvino")


def test_operations_that_need_an_input_are_not_made_without_inputs() -> None:
    reading = read_library("openvino", [shipped().spec("openvino/MaxPool")])
    schema = reading.schemas["MaxPool", 1]
    assert isinstance(schema, LibrarySchema)
    assert schema.inputs
    assert 0 not in schema.inputs
