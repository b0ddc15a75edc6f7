"""The reference page of the format agrees with the code."""

import re
from pathlib import Path

from fakes.specs import VOCABULARY

from opconform.specs.audit import audit
from opconform.specs.loader import Library, spec_of
from opconform.specs.model import COMMON_PARAMETERS, GROUPS, Vocabulary, Word, expand
from opconform.specs.reading import read
from opconform.specs.schema import ClauseText, EdgeText, OperandText, SpecText, TypesFromText, VersionText

PAGE = (Path(__file__).parents[2] / "docs" / "spec-format.md").read_text()


def test_the_example_loads_and_agrees_with_the_standard(tmp_path) -> None:
    example = re.search(r"```yaml\n(operator: .*?)```", PAGE, re.DOTALL)[1]
    words = Vocabulary(frozenset(), frozenset({"uniform", "special"}), frozenset({"relu"}))
    spec = spec_of(read(example), {**VOCABULARY, "elementwise": words})
    assert list(spec.versions) == [1, 6, 13, 14]
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "Relu.yaml").write_text(example)
    assert audit(Library(tmp_path)).findings.differences == ()


def test_every_block_of_yaml_can_be_read() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        assert read(block).value


def test_the_groups_are_those_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([\w-]+)` \| ([\w, -]+) \|$", PAGE, re.MULTILINE))
    told = {name: [t for word in rows[name].split(", ") for t in expand(word)] for name in GROUPS}
    assert {name: set(types) for name, types in told.items()} == {name: set(types) for name, types in GROUPS.items()}


def test_every_section_key_word_and_common_parameter_is_told() -> None:
    names = {f.alias or n for model in (SpecText, OperandText, TypesFromText) for n, f in model.model_fields.items()}
    names |= {*VersionText.model_fields, *ClauseText.model_fields}
    names |= {field.alias or name for name, field in EdgeText.model_fields.items()}
    names |= COMMON_PARAMETERS | {word.value for word in Word}
    assert {name for name in names if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", PAGE)} == set()
