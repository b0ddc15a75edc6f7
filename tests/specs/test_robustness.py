"""Whatever a spec file says, it loads or is refused with a place: no traceback reaches the user."""

import contextlib
import random

import pytest
from fakes.specs import MEAN, REDUCE, spec_from
from hypothesis import given
from hypothesis import strategies as st

from opconform.specs.reading import SpecError, SpecErrors, read

PIECES = [
    *("", "~", "[]", "{}", "0", "-1", "1.5", "true", "x", "absent", "omitted", "all", "edges", "T", "[T]", "{a: b}"),
    *("...", "removed", "[...]", "{...}", "{value: x}", "{levels: [a]}", "{not: a}", "[[1]]", "[{a: 1}]", "type(data)"),
    *("seq(T)", "axes", "r - 1", "[r - 1]", "1 x", "18", "since: 11", "expect: rejected", '""', "optional T", "T+"),
    *("{shapes: cube}", "{T: {not: [ieee]}}", "{axes: {value: [r]}}", "{outputs: [reduced]}", "{opset: first}"),
]


def damaged(text: str, seed: int) -> str:
    """Return the text with some of its words, values and lines replaced by others."""
    choose = random.Random(seed)
    lines = text.splitlines()
    for _ in range(choose.randint(1, 3)):
        at = choose.randrange(len(lines))
        key, colon, value = lines[at].partition(": ")
        kind = choose.randrange(4)
        if kind == 0:
            lines[at] = key + colon + choose.choice(PIECES)
        elif kind == 1:
            words = value.split(" ")
            words[choose.randrange(len(words))] = choose.choice(PIECES)
            lines[at] = key + colon + " ".join(words)
        elif kind == 2:
            lines.insert(at, lines[at].replace(key.strip(), choose.choice(PIECES), 1))
        else:
            del lines[at]
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("text", [REDUCE, MEAN], ids=["ReduceMean", "Mean"])
def test_a_damaged_spec_loads_or_is_refused_with_places(text: str) -> None:
    refused = 0
    for seed in range(400):
        try:
            spec_from(damaged(text, seed))
        except (SpecError, SpecErrors) as error:
            refused += 1
            errors = error.errors if isinstance(error, SpecErrors) else (error,)
            assert all(e.position.line >= 1 and e.message for e in errors)
    assert refused > 200


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 20) | st.sampled_from([p for p in PIECES if p[:1] not in "[{~"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["T", "axes", "value", "a"]), inner),
    max_leaves=4,
)
paths = st.sampled_from([path for path in read(REDUCE).marks if path])


@given(paths, values)
def test_any_value_anywhere_loads_or_is_refused(path, value) -> None:
    import yaml

    whole = read(REDUCE).value
    inner = whole
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with contextlib.suppress(SpecError, SpecErrors):
        spec_from(yaml.safe_dump(whole, sort_keys=False))
