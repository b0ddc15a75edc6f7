"""The JSON Schema that editors check spec files by."""

import json

from opconform.specs.schema import json_schema


def test_the_schema_names_every_section_and_what_it_takes() -> None:
    schema = json_schema()
    json.dumps(schema)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert set(schema["required"]) == {"operator", "family", "source", "versions", "clauses"}
    assert schema["additionalProperties"] is False
    (clause,) = schema["properties"]["clauses"]["patternProperties"].values()
    assert {"type": "string"} in clause["anyOf"]
    edge = schema["$defs"]["EdgeText"]
    assert set(edge["required"]) == {"with", "tests"}
    assert "settings" not in edge["properties"]
    assert {"type": "string"} in edge["properties"]["tests"]["anyOf"]
    assert schema["$defs"]["ClauseText"]["properties"]["status"]["enum"] == [
        *("required", "inferred", "disputed", "withdrawn"),
    ]
