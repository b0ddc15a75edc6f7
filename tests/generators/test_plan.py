"""The plan: every allowed combination, every edge, each case once, whatever is selected."""

from __future__ import annotations

import itertools
import math
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

import pytest
from fakes.sampled import each, newest_of_each_family
from hypothesis import given, settings
from hypothesis import strategies as st

from opconform.cases.elements import element_type
from opconform.cases.errors import OpconformError
from opconform.cases.ids import CaseId, matches_numbered, parse_id
from opconform.generators.covering import combinations as count_combinations
from opconform.generators.covering import least, rows
from opconform.generators.fills import UNDRAWN, suits
from opconform.generators.parameters import free_letters
from opconform.generators.plan import Selection, counted, expected, grid, planned
from opconform.generators.source import GeneratedCases
from opconform.specs.loader import Library
from opconform.specs.model import VersionSpec

SOURCE = GeneratedCases()
LIBRARY = SOURCE.library
OF_THE_SIGNATURE = {
    "type-constraint",
    "attributes-known",
    "types",
    "types-known",
    "data-type",
    "dtype-known",
    "datatype-known",
    "axes-type",
}
SPECS = [LIBRARY.spec(operator) for operator in LIBRARY.operators()]
SPEC_OF = {str(version.operator): (spec, version) for spec in SPECS for version in spec.versions.values()}
VERSIONS = {str(version.operator): version for spec in SPECS for version in spec.versions.values()}
MEANS = tuple(name for name in VERSIONS if name.partition("-")[0].endswith(("/Mean", "/ReduceMean")))
LAST = tuple({str(VERSIONS[name].operator).rsplit("-", 1)[0]: name for name in VERSIONS}.values())
USUAL = newest_of_each_family(SPECS)
each_version = each([*VERSIONS], [*MEANS, *USUAL])
each_mean = pytest.mark.parametrize("name", MEANS)
each_last = each(LAST, USUAL)


@cache
def plan(*globs: str, strength: int | None = 2, draws: int = 1, seed: int = 0) -> tuple[str, ...]:
    """Return the plan of a selection; of the default suite from its lock, which the gate holds against the plan."""
    return tuple(planned(LIBRARY, Selection(globs, strength, draws, seed), from_lock=not globs))


def of(name: str, **more: int) -> list[CaseId]:
    return [parse_id(text) for text in plan(name, **more)]


# The suite


def test_the_versions_of_the_mean_are_there_in_three_standards() -> None:
    onnx = {f"onnx/ReduceMean-{v}" for v in (1, 11, 13, 18)} | {f"onnx/Mean-{v}" for v in (1, 6, 8, 13)}
    assert set(VERSIONS) >= onnx | {"openvino/ReduceMean-1", "onednn/ReduceMean"}


MORE = ({"draws": 3}, {"seed": 9}, {"strength": 1})


@pytest.mark.parametrize(
    ("globs", "more"),
    [
        pytest.param((), {}, marks=pytest.mark.slow),
        *((("onnx/Mean-13", "onnx/ReduceMean-18", "openvino/ReduceMean-1"), more) for more in MORE),
    ],
)
def test_no_id_comes_twice(globs: tuple[str, ...], more: dict[str, int]) -> None:
    ids = plan(*globs, **more)
    assert len(set(ids)) == len(ids) > 500


@each_version
def test_every_version_has_valid_cases_of_every_type_of_its_constraint(name: str) -> None:
    version = VERSIONS[name]
    valid = [c.types for c in of(name) if c.edge is None or not version.edges[c.edge].rejected]
    letters = free_letters(version)
    for place, letter in enumerate(letters):
        several = letter == letters[-1]  # tensors of a variadic port may have types of their own
        counted = Counter(type_ for case in valid for type_ in (case[place:] if several else case[place : place + 1]))
        tensors = {type_ for type_ in version.signature.types[letter] if "(" not in type_}
        assert tensors <= set(counted)
        assert name not in MEANS or place or min(counted.values()) >= 4


@each_version
def test_every_edge_is_there_once_for_each_type_that_it_names_and_for_few_of_others(name: str) -> None:
    version = VERSIONS[name]
    planned_edges: dict[str, list[CaseId]] = {}
    for case in of(name):
        if case.edge:
            planned_edges.setdefault(case.edge, []).append(case)
    for edge in version.edges.values():
        cases = planned_edges.pop(edge.id)
        assert len(set(cases)) == len(cases)
        if "type(data_0)" in edge.settings:
            assert len(cases) == 1
            continue
        varied = "fill" in edge.settings and not edge.rejected
        for place, letter in enumerate(free_letters(version)):
            found = Counter(case.types[place] for case in cases)
            named = edge.settings.get(letter)
            if isinstance(named, tuple):
                assert set(found) == set(named)
                assert len(set(found.values())) == 1
            else:
                assert set(found) <= set(version.signature.types[letter])
                assert len(found) == 1 or varied
    assert not planned_edges


def test_an_edge_about_values_has_a_type_of_each_arithmetic_and_others_one() -> None:
    def types(edge: str) -> set[str]:
        return {case.types[0] for case in of("onnx/ReduceMean-18") if case.edge == edge}

    assert types("axes-unsorted") == {"float32"}
    assert types("axis-too-large") == {"float32"}
    assert types("longer-than-16-bits") == {"float32", "float64", "int32", "uint32"}


@pytest.mark.parametrize(
    "text",
    [
        "onnx/ReduceMean-18/uint64/3x2x2/axes=2,0/ramp/axes-unsorted",
        "onnx/ReduceMean-18/bfloat16/8x8/axes=1/beside-2^10/accumulator-10-bfloat16",
        "openvino/ReduceMean-1/int8,int64/3x2x2/axes=0,1,2;keep_dims=true/ramp/all-kept",
    ],
)
def test_an_edge_for_a_type_or_under_a_name_that_is_not_planned_is_there_by_its_id(text: str) -> None:
    assert text not in plan(text.rpartition("/")[0].rsplit("/", 4)[0])
    assert list(SOURCE.case(text).ids) == [text]


def test_mean_has_the_numbers_of_inputs_and_the_shapes_that_trip_backends() -> None:
    shapes = {c.shapes for name in ("onnx/Mean-8", "onnx/Mean-13") for c in of(name)}
    assert {len(s) for s in shapes} >= {0, 1, 2, 3, 9, 40}
    assert ((), (2, 3)) in shapes, "the first input is not the largest"
    assert ((),) in shapes


def test_reduce_mean_has_axes_in_every_form() -> None:
    cases = of("onnx/ReduceMean-18")
    forms = {(c.setting("axes"), c.setting("axes-from"), c.setting("dims")) for c in cases}
    assert {axes for axes, _, _ in forms} >= {None, "none", "omitted", "0", "-1"}
    given_axes = {(source, dims) for axes, source, dims in forms if axes not in (None, "omitted")}
    assert given_axes == set(itertools.product((None, "graph-input"), (None, "symbolic")))


# Covering arrays


def combinations(version: VersionSpec, strength: int) -> Iterator[dict[str, str]]:
    """Yield every combination of levels of so many parameters that some allowed row has."""
    levels = {name: list(values) for name, values in version.parameters.items()}
    for names in itertools.combinations(levels, strength):
        for values in itertools.product(*(levels[name] for name in names)):
            part = dict(zip(names, values, strict=True))
            if can_be_completed(part, levels, version.exclude):
                yield part


def can_be_completed(
    part: dict[str, str], levels: Mapping[str, Sequence[str]], excluded: Sequence[Mapping[str, Sequence[str]]]
) -> bool:
    if any(all(part.get(name) in banned for name, banned in out.items()) for out in excluded):
        return False
    free = next((name for name in levels if name not in part), None)
    return free is None or any(can_be_completed({**part, free: v}, levels, excluded) for v in levels[free])


def uncovered(version: VersionSpec, found: list[dict[str, str]], strength: int) -> tuple[list[dict[str, str]], int]:
    covered = {
        tuple((name, row[name]) for name in names)
        for row in found
        for names in itertools.combinations(version.parameters, strength)
    }
    wanted = [tuple(part.items()) for part in combinations(version, strength)]
    return [dict(part) for part in wanted if part not in covered], len(wanted)


def covering_rows(version: VersionSpec, strength: int | None) -> list[dict[str, str]]:
    return list(rows({name: list(v) for name, v in version.parameters.items()}, version.exclude, strength))


@each_version
def test_every_allowed_pair_of_levels_is_covered_and_nothing_excluded_occurs(name: str) -> None:
    version = VERSIONS[name]
    found = covering_rows(version, 2)
    missing, wanted = uncovered(version, found, 2)
    assert missing == []
    assert wanted > 150 or name not in MEANS
    for row in found:
        assert not any(all(row[n] in banned for n, banned in out.items()) for out in version.exclude)


@pytest.mark.parametrize("name", ["onnx/Mean-6", "onnx/ReduceMean-1"])
def test_strength_three_covers_every_allowed_triple_with_more_rows(name: str) -> None:
    version = VERSIONS[name]
    missing, wanted = uncovered(version, covering_rows(version, 3), 3)
    assert missing == []
    assert wanted > 1000
    assert len(plan(name, strength=3)) > len(plan(name)) > len(plan(name, strength=1))


def test_full_strength_has_every_combination() -> None:
    version = VERSIONS["onnx/Mean-6"]
    sizes = [len(levels) for levels in version.parameters.values()]
    assert len(covering_rows(version, None)) == len(set(map(str, covering_rows(version, None)))) == 3 * 5 * 4 * 2 * 12
    assert sorted(sizes) == [2, 3, 4, 5, 12]
    assert set(plan("onnx/Mean-6")) <= set(plan("onnx/Mean-6", strength=None))


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=5),
    st.lists(
        st.dictionaries(st.integers(0, 4), st.sets(st.integers(0, 3), min_size=1), min_size=1, max_size=3), max_size=4
    ),
    st.integers(1, 3),
)
def test_any_parameter_space_is_covered(sizes: list[int], bans: list[dict[int, set[int]]], strength: int) -> None:
    levels = {f"p{i}": [f"v{j}" for j in range(size)] for i, size in enumerate(sizes)}
    excluded = [
        {f"p{i}": [f"v{j}" for j in sorted(banned)] for i, banned in out.items()}
        for out in bans
        if all(f"p{i}" in levels for i in out)
    ]
    found = list(rows(levels, excluded, strength))
    for names in itertools.combinations(levels, min(strength, len(levels))):
        for values in itertools.product(*(levels[name] for name in names)):
            part = dict(zip(names, values, strict=True))
            there = any(part.items() <= row.items() for row in found)
            assert there == can_be_completed(part, levels, excluded)


@given(st.lists(st.integers(1, 4), min_size=3, max_size=5))
def test_groups_of_parameters_are_crossed_whole_and_the_rest_in_pairs(sizes: list[int]) -> None:
    levels = {f"p{i}": [f"v{j}" for j in range(size)] for i, size in enumerate(sizes)}
    found = rows(levels, [], 2, [("p0", "p1", "p2")])
    triples = {(row["p0"], row["p1"], row["p2"]) for row in found}
    assert len(triples) == sizes[0] * sizes[1] * sizes[2]
    for one, other in itertools.combinations(levels, 2):
        assert len({(row[one], row[other]) for row in found}) == len(levels[one]) * len(levels[other])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(1, 3))
def test_the_work_of_a_covering_array_and_its_least_size_are_known_without_it(sizes: list[int], strength: int) -> None:
    levels = {f"p{i}": [f"v{j}" for j in range(size)] for i, size in enumerate(sizes)}
    products = [math.prod(map(len, some)) for some in itertools.combinations(levels.values(), strength)]
    assert count_combinations(levels, strength) == sum(products)
    assert least(levels, min(strength, len(sizes))) <= len(rows(levels, [], strength))
    assert least(levels, None) == len(rows(levels, [], None))


# Programs and fills


@each_version
def test_cases_of_one_program_are_neighbours(name: str) -> None:
    programs = [key for key, _ in itertools.groupby((c.types, c.shapes, c.settings) for c in of(name))]
    assert len(programs) == len(set(programs))
    assert name not in MEANS or len(programs) < 0.8 * len(of(name)), "most programs have several cases"


@each_mean
def test_one_type_is_crossed_others_have_the_widest_shape_and_those_of_other_arithmetic_every_fill(name: str) -> None:
    version = VERSIONS[name]
    crossed = set(grid(*SPEC_OF[name], 2))  # what others pair may have the fills of edges
    by_type: dict[str, list[CaseId]] = {}
    for case in (c for c in of(name) if c in crossed):
        by_type.setdefault(case.types[0], []).append(case)
    assert max(by_type, key=lambda one: len(by_type[one])) == "float32"
    widest = max((c.shapes for c in by_type["float32"]), key=lambda shapes: max(map(math.prod, shapes)))
    for one, some in by_type.items():
        kept_out = any(set(out) == {"T", "shapes"} and one in out["T"] for out in version.exclude)
        assert kept_out or any(max(map(math.prod, c.shapes)) == max(map(math.prod, widest)) for c in some), one
        suiting = {fill for fill in version.parameters["fill"] if suits(fill, element_type(one))}
        banned = {
            fill for out in version.exclude if set(out) == {"T", "fill"} and one in out["T"] for fill in out["fill"]
        }
        if element_type(one).kind == "float":
            assert {c.fill for c in some} == suiting - banned, one
            together = Counter((c.shapes, c.settings) for c in some)
            assert sum(count == len(suiting - banned) for count in together.values()) >= (2 if one == "float32" else 1)
        assert {c.fill for c in some} <= suiting - banned, one


@pytest.mark.slow
def test_the_default_suite_stays_within_its_budget() -> None:
    every = Counter("/".join(text.split("/", 2)[:2]) for text in plan())
    assert max(every.values()) <= 300
    assert sum(count for name, count in every.items() if name.startswith("onnx/")) <= 65_000
    usual = [count for name, count in every.items() if name not in MEANS and not name.startswith("onnx/Cast-")]
    assert sum(usual) <= 93 * len(usual)
    size = expected(LIBRARY, Selection(), from_lock=True)
    assert sum(one.cases for one in size.values()) == every.total()
    assert size["onnx"].programs == len({tuple(t.split("/")[1:5]) for t in plan() if t.startswith("onnx/")})
    assert size["onnx"].seconds < 85


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection(strength=9, draws=1_000_000), "strength 9, 1,000,000 draws: onednn/.+ has [0-9,]+ combinations"),
        (Selection(draws=10_000_000), "at least [0-9,]+ cases, [0-9,.]+ hours"),
    ],
)
def test_absurd_plans_are_refused_with_their_size_before_anything_is_made(selection: Selection, message: str) -> None:
    with pytest.raises(OpconformError, match=message):
        next(planned(LIBRARY, selection))


def test_many_draws_of_few_programs_are_no_absurd_plan() -> None:
    one = Selection(("onnx/Mean-13/float32/3x2/*",), draws=100_000_000)
    assert next(planned(LIBRARY, one)).startswith("onnx/Mean-13/float32/3x2/")


# Edges are as their requirements say


@pytest.mark.slow
@each_last
def test_rejected_edges_break_a_clause(name: str) -> None:  # that no other case does, each of them is asked when made
    source, version = SOURCE, VERSIONS[name]
    edges = {id_: version.edge(id_) for id_ in {case.edge for case in of(name)} if id_}
    for case in of(name):
        edge = edges.get(case.edge) if case.edge else None
        if edge is None or not edge.rejected or set(edge.tests) & OF_THE_SIGNATURE:
            continue  # types and attributes that the version has not, no formula looks at
        assert source.broken(source.row(case)), f"{case}: nothing that its formula requires is broken"


# Draws and seeds


def test_draws_repeat_what_is_drawn_and_nothing_else() -> None:
    once, thrice = plan("onnx/Mean-13"), set(plan("onnx/Mean-13", draws=3))
    assert set(once) <= thrice
    more = Counter(_without_draw(text) for text in thrice)
    assert set(more) == set(once)
    for text, count in more.items():
        case = parse_id(text)
        assert count == (1 if case.edge or case.fill in UNDRAWN else 3), text


def _without_draw(text: str) -> str:
    for draw in ("draw=1;", "draw=2;"):
        text = text.replace(f"/{draw}", "/").replace(f";{draw}", ";")
    for draw in ("draw=1", "draw=2"):
        text = text.replace(f"/{draw}/", "/-/").replace(f";{draw}/", "/")
    return text


def test_a_seed_is_in_the_id_of_what_it_changes_alone() -> None:
    for text in plan("onnx/Mean-13", seed=4):
        case = parse_id(text)
        rotated = case.fill == "ramp" and case.size > 1
        assert (case.setting("seed") == "4") == (case.fill not in UNDRAWN or rotated)


def test_a_seed_rotates_the_ramp_of_each_input_and_keeps_its_values() -> None:
    bare, *seeded = (
        [array.reshape(-1).tolist() for array in SOURCE.case(f"onnx/Sum-13/float32/3*4x5/{seed}/ramp").tensors()]
        for seed in ("-", "seed=1", "seed=2")
    )
    for one in seeded:
        assert one != bare
        for array, was in zip(one, bare, strict=True):
            assert sorted(array) == sorted(was)
    assert seeded[0] != seeded[1]


@pytest.mark.slow
def test_with_another_seed_no_id_comes_twice_and_fewer_than_a_fifth_are_the_same() -> None:
    usual, seeded = set(plan()), plan(seed=7)
    other = set(seeded)
    assert len(usual) == len(other) == len(seeded)
    assert 0.12 < len(usual & other) / len(usual) < 0.131  # docs/what-a-result-proves.md has the number


@pytest.mark.slow
def test_memory_does_not_grow_with_draws() -> None:
    def peak(draws: int) -> int:
        tracemalloc.start()
        count = sum(1 for _ in planned(LIBRARY, Selection(("onnx/Mean-*",), draws=draws)))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert count > 400 * draws * 0.6
        return most

    peak(1)
    assert peak(20) < peak(1) + 500_000


# Selections


def globs() -> st.SearchStrategy[str]:
    """Globs made of ids: parts replaced by wildcards, ends cut."""

    def made(text: str, cuts: list[tuple[int, int, str]]) -> str:
        for at, length, wild in cuts:
            start = at % (len(text) + 1)
            text = text[:start] + wild + text[start + length :]
        return text

    cut = st.tuples(
        st.sampled_from([0, 0, *range(80)]), st.integers(0, 50), st.sampled_from(["*", "?", "[a-z]", "[!x]", "[", ""])
    )
    names = st.deferred(lambda: st.sampled_from([*plan(*FEW)[::5], *VERSIONS, "onnx/*", "*"]))
    return st.builds(made, names, st.lists(cut, max_size=3))


FEW = ("onnx/Add-*", "onnx/ReduceMean-*", "onnx/Unsqueeze-*", "onednn/ReduceMean", "openvino/ReduceMean-*")


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """The operators of FEW, in a folder of spec files of their own: all would take a minute for each glob."""
    folder = tmp_path_factory.mktemp("specs")
    shutil.copytree(LIBRARY.root / "families", folder / "families")
    for name in {glob.split("-")[0] for glob in FEW}:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(LIBRARY.root / f"{name}.yaml", folder / f"{name}.yaml")
    return GeneratedCases(folder).library


@pytest.mark.slow
@settings(max_examples=60)  # each plans an operator or five
@given(st.lists(globs(), min_size=1, max_size=2))
def test_a_glob_selects_what_fnmatchcase_matches(few: Library, patterns: list[str]) -> None:
    wanted = [
        text
        for text in plan(*FEW)
        if any(fnmatchcase(text, p) or fnmatchcase("/".join(text.split("/")[:2]), p) for p in patterns)
    ]
    assert list(planned(few, Selection(tuple(patterns)))) == wanted


def globs_of_draws() -> st.SearchStrategy[str]:
    pieces = [
        "*",
        "*",
        "=",
        "1",
        "12",
        "/",
        ";",
        "draw=",
        "draw",
        "/uniform",
        "uniform",
        "2x3",
        "onnx/",
        "?",
        "[0-9]",
        "-13/",
    ]
    return st.lists(st.sampled_from(pieces), max_size=6).map("".join)


@pytest.mark.slow
@given(
    st.one_of(globs_of_draws(), globs()),
    st.sampled_from(["onnx/Mean-13/float32/2x3,2*3/draw=", "onnx/Mean-13/int32/12/axes=1;draw="]),
    st.sampled_from(["/uniform", ";seed=12/uniform", ";keepdims=1/large"]),
)
def test_draws_that_a_glob_tells_alike_match_alike(glob: str, before: str, after: str) -> None:
    alike = matches_numbered(glob, before, after)
    if alike is not None:
        assert {fnmatchcase(f"{before}{n}{after}", glob) for n in (1, 2, 9, 12, 21, 112, 121, 1230)} == {alike}


@pytest.mark.parametrize("glob", ["onnx/ReduceMean-18/float32/*/uniform", "*/float32/2x3/*", "onnx/*-18/*", "*"])
def test_the_globs_that_users_write_tell_draws_alike(glob: str) -> None:
    assert matches_numbered(glob, "onnx/ReduceMean-18/float32/2x3/axes=1;draw=", "/uniform") is True


@pytest.mark.parametrize(
    "glob",
    [
        "*/ReduceMean*/*",
        "*/A-from*/*",
        "*/Unsq*-11/*",
        "*/a*/*",
        "*/A*/*",
        "*/*=1/*",
        "*Add-13/*/*",
        "*keepdims=0*",
        "*-13/*/*",
    ],
)
def test_a_glob_of_any_standard_selects_what_fnmatchcase_matches(few: Library, glob: str) -> None:
    wanted = [text for text in plan(*FEW) if fnmatchcase(text, glob)]
    assert list(planned(few, Selection((glob,)))) == wanted


@pytest.mark.parametrize("glob", ["*/ReduceMean*", "onnx/*Mean-*", "*/[M-R]*-1[38]", "onnx/*8", "onnx/*nan*", "*/A*"])
def test_a_glob_without_a_third_part_selects_operator_versions_by_name(few: Library, glob: str) -> None:
    wanted = [text for text in plan(*FEW) if fnmatchcase("/".join(text.split("/")[:2]), glob)]
    assert list(planned(few, Selection((glob,)))) == wanted
    assert counted(few, Selection((glob,), draws=3)).total() == len(list(planned(few, Selection((glob,), draws=3))))


@pytest.mark.slow
def test_a_glob_selects_draws_as_fnmatchcase_does(few: Library) -> None:
    every = list(planned(LIBRARY, Selection(("onnx/ReduceMean-18/float32/*",), draws=13)))
    for glob in ("*/*/uniform", "*draw=1[/;]*", "*draw=1*", "*/*;draw=*/large", "onnx/*2x3*/draw=12/*", "*/*=1/*"):
        wanted = [text for text in every if fnmatchcase(text, glob)]
        both = planned(few, Selection((glob,), draws=13, standards=("onnx",)))
        assert [text for text in both if text.startswith("onnx/ReduceMean-18/float32/")] == wanted, glob


def test_a_version_selects_its_cases_and_no_other_version_s() -> None:
    assert {c.operator for c in of("onnx/ReduceMean-1")} == {"onnx/ReduceMean-1"}
    assert {c.operator for c in of("onnx/ReduceMean-1*")} == {f"onnx/ReduceMean-{v}" for v in (1, 11, 13, 18)}
    assert {c.operator for c in of("onnx/ReduceMe*")} == {f"onnx/ReduceMean-{v}" for v in (1, 11, 13, 18)}
    assert plan("onnx/Mean-2*") == ()


# Another process


@pytest.mark.slow
@pytest.mark.parametrize("hash_seed", ["1", "2"])
def test_the_plan_is_the_same_in_every_process(hash_seed: str) -> None:
    script = (
        "from opconform.generators.plan import *\n"
        "from opconform.generators.source import GeneratedCases\n"
        "print(*planned(GeneratedCases().library, Selection(('*/*Mean-*',), draws=2)), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert tuple(done.stdout.split()) == plan("*/*Mean-*", draws=2)
