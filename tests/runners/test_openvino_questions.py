"""What OpenVINO is asked about its operations does not end its process, and is enough to find what it takes."""

from __future__ import annotations

import pytest

from opconform.generators.source import shipped
from opconform.runners.backends.library_reading import read_library
from opconform.specs.audit import LibraryReading, LibrarySchema

pytest.importorskip("openvino")


@pytest.fixture(scope="module")
def reading() -> LibraryReading:
    specs = [shipped().spec(f"openvino/{name}") for name in ("MaxPool", "Broadcast", "Reverse")]
    return read_library("openvino", specs)


@pytest.mark.slow
@pytest.mark.parametrize("version", [("MaxPool", 1), ("Broadcast", 1)])
def test_operations_that_need_an_input_are_not_made_without_inputs(version, reading: LibraryReading) -> None:
    schema = reading.schemas[version]
    assert isinstance(schema, LibrarySchema)
    assert schema.inputs
    assert 0 not in schema.inputs


def test_operations_are_made_with_the_words_of_their_specs(reading: LibraryReading) -> None:
    broadcast, reverse = reading.schemas["Broadcast", 3], reading.schemas["Reverse", 1]
    assert isinstance(broadcast, LibrarySchema)
    assert {2, 3} <= broadcast.inputs  # a third with mode=explicit alone
    assert isinstance(reverse, LibrarySchema)
    assert {"bool", "int32"} <= reverse.types["I"]  # one with mode=mask, the other with mode=index
