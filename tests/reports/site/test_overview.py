"""The overview ranks, and names twins, coverage and changes; the timeline has releases beside one another."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from fakes.results import case, result, write_folder

from opconform.cli import main
from opconform.reports.history.database import add
from opconform.reports.runs import put_together
from opconform.reports.site.build import write_site
from opconform.reports.site.case_pages import source_of
from opconform.reports.site.gather import Knowledge, gather
from opconform.reports.site.overview import Ranked, ranking
from opconform.reports.site.releases import Past, past_of, timeline
from opconform.specs.loader import Library

CAST, MEAN = "onnx/Cast-13", "onnx/ReduceMean-18"
PLAN = {"selection": [], "strength": 2, "draws": 1, "seed": 0, "machine": {}, "command": [], "options": {}}


def run(place: Path, name: str, outcomes: dict[str, str], version: str = "1.0", night: int = 1) -> Path:
    """A run of one backend, an outcome a case."""
    kept = [result(outcome, one, name, detail="d") for one, outcome in outcomes.items()]
    return write_folder(place, kept, versions={name: version}, night=night, **PLAN)


def ranked_of(*folders: Path) -> list[Ranked]:
    gathered = gather(put_together(folders))
    return ranking(gathered, Knowledge(source_of(gathered)), Past())


def cases(number: int) -> list[str]:
    return [f"{CAST}/float32/{n + 1}/-/uniform" for n in range(number)]


def test_a_crash_ranks_before_wrong_answers_and_these_before_errors(tmp_path: Path) -> None:
    one, two, three = cases(3)
    rows = ranked_of(
        run(tmp_path / "a", "right", {one: "pass", two: "pass", three: "pass"}),
        run(tmp_path / "b", "errors", {one: "error", two: "error", three: "error"}),
        run(tmp_path / "c", "wrong", {one: "wrong-value", two: "error", three: "pass"}),
        run(tmp_path / "d", "crashes", {one: "crash", two: "pass", three: "pass"}),
    )
    assert [row.name for row in rows] == ["crashes", "wrong", "errors", "right"]
    assert [row.failures for row in rows] == [
        "1 crash, no wrong answer",
        "1 wrong answer, 1 error, no crash",
        "3 errors, no wrong answer, no crash",
        "",
    ]
    assert [row.level for row in rows] == ["some", "some", "some", "full"]


@pytest.mark.slow
def test_the_worst_failures_are_the_first_kinds_of_several_backends(tmp_path: Path) -> None:
    one, two, three = f"{MEAN}/float32/4/-/ramp", *cases(2)
    folders = [
        run(tmp_path / "a", "alpha", {one: "wrong-value", two: "crash", three: "crash"}),
        run(tmp_path / "b", "beta", {one: "wrong-value", two: "crash", three: "pass"}),
    ]
    write_site(put_together(folders), tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    told = re.findall(
        r'<li class="failure brief">.*?<span class="mark \w+">([\w-]+)</span>.*?>(\w+)</a>', text, re.DOTALL
    )
    assert told == [("crash", "alpha"), ("wrong-value", "beta")]


@pytest.mark.slow
def test_what_is_covered_is_told_of_all_the_suite_has(tmp_path: Path) -> None:
    whole = Library().version_counts()["onnx"]
    ran = {case(CAST): "pass", case(MEAN): "unsupported"}
    [row] = ranked_of(run(tmp_path / "a", "alpha", ran))
    assert [one.words for one in row.covered] == [f"1 of {whole} ONNX operator versions (0.1%)"]
    assert [badge.message for badge in row.badges] == [f"100% correct in 1 of {whole} versions"]
    assert whole == sum(len(spec.versions) for spec in Library().specs() if spec.standard == "onnx")


def test_a_percentage_needs_fifty_judged_cases(tmp_path: Path) -> None:
    few = dict.fromkeys(cases(48), "pass") | {case(MEAN): "wrong-value"}
    [row] = ranked_of(run(tmp_path / "few", "alpha", few))
    assert row.right == "Right in 48 of 49 judged cases"
    [row] = ranked_of(run(tmp_path / "more", "alpha", {**few, cases(49)[-1]: "pass"}))
    assert row.right == "Right in 49 of 50 judged cases (98%)"


@pytest.mark.slow
def test_the_overview_lists_the_operators_that_fail_and_says_when_and_where_it_ran(tmp_path: Path) -> None:
    one, two = cases(2)
    kept = [result(o, c, "alpha") for o, c in (("wrong-value", one), ("wrong-value", two), ("crash", case(MEAN)))]
    machine = {"machine": {"platform": "Linux-6", "cores": 4, "python": "3.12.1"}}
    write_site(put_together([write_folder(tmp_path / "a", kept, **{**PLAN, **machine})]), tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    rows = re.findall(r'<tr><th scope="row"><a href="(cases[^"]*)">([\w/]+)</a>.*?<td class="num">(\d+)</td>', text)
    assert [(name, count) for _, name, count in rows] == [("onnx/ReduceMean", "1"), ("onnx/Cast", "2")]
    assert rows[0][0].replace("&amp;", "&") == "cases.html?q=onnx/ReduceMean-&outcome=failed"
    assert "2026-01-01, Linux-6, 4 cores, Python 3.12.1" in text
    assert "https://onnx.ai/onnx/operators/" in text


@pytest.mark.slow
def test_a_crash_is_told_by_what_happened_and_no_clause_is_blamed(tmp_path: Path) -> None:
    one, two = cases(2)
    clause = "onnx/Cast#cast"
    kept = [
        result("crash", one, "alpha", detail="signal SIGFPE", clauses=(clause,)),
        result("pass", two, "alpha", clauses=(clause,)),
    ]
    write_site(put_together([write_folder(tmp_path / "a", kept, **PLAN)]), tmp_path / "site")
    failure = re.search(
        r'<li class="failure brief">.*?</li>', (tmp_path / "site" / "index.html").read_text(), re.DOTALL
    )
    assert failure
    assert "signal SIGFPE" in failure[0]
    assert "cast" not in re.sub(r'href="[^"]*"', "", failure[0]).replace("onnx/Cast", "")
    page = (tmp_path / "site" / "operators" / "onnx-Cast-13.html").read_text()
    assert re.search(r'class="mark full"[^>]*title="1 passed, 1 crashed or hung"', page)


@pytest.mark.slow
def test_what_backends_do_differently_comes_first_among_the_silences(tmp_path: Path) -> None:
    def told(backend: str, option: str) -> list[object]:
        silent = {"flush": ["none"], "integer-rounding": ["a", "b"], "saturation": [option]}
        return [result(case=case(CAST), backend=backend, behaviour=silent), result(case=case(MEAN), backend=backend)]

    folders = [write_folder(tmp_path / b, told(b, o), **PLAN) for b, o in (("alpha", "a"), ("beta", "b"))]
    folders.append(run(tmp_path / "c", "gamma", {case(MEAN): "pass"}))
    write_site(put_together(folders), tmp_path / "site")
    text = (tmp_path / "site" / "silences.html").read_text()
    assert re.findall(r'<th scope="row" class="text"><code>([\w-]+)', text) == [
        "saturation",
        "flush",
        "integer-rounding",
    ]
    assert re.findall(r'<th scope="col">(\w+)</th>', text)[2:] == ["alpha", "beta"]  # gamma shows none


@pytest.mark.slow
def test_a_twin_stands_in_the_row_of_the_one_that_it_is_like(tmp_path: Path) -> None:
    names = cases(1000)
    same = {name: "wrong-value" if n < 3 else "pass" for n, name in enumerate(names)}
    folders = [
        run(tmp_path / "a", "alpha-noopt", {**same, names[0]: "pass"}),
        run(tmp_path / "b", "alpha", same),
        run(tmp_path / "c", "beta", {**same, names[7]: "error", names[8]: "error"}),
        run(tmp_path / "d", "gamma", dict(list(same.items())[1:])),
    ]
    rows = {row.name: row for row in ranked_of(*folders)}
    assert [(t.name, t.differing, t.cases) for t in rows["alpha"].twins] == [("alpha-noopt", 1, 1000)]
    assert [name for name, row in rows.items() if row.twins] == ["alpha"]
    write_site(put_together(folders), tmp_path / "site")
    text = (tmp_path / "site" / "index.html").read_text()
    assert text.count('<li class="rank">') == 3
    assert "gives the same results except in 1 of 1,000 cases" in " ".join(text.split())
    assert (tmp_path / "site" / "backends" / "alpha-noopt.html").is_file()


def test_earlier_runs_tell_what_changed_and_make_a_timeline(tmp_path: Path) -> None:
    one, two = case(CAST), case(MEAN)
    folders = [
        run(tmp_path / "1.9", "alpha", {one: "unsupported", two: "pass"}, "1.9.0", night=3),
        run(tmp_path / "1.10", "alpha", {one: "wrong-value", two: "pass"}, "1.10.0", night=1),
        run(tmp_path / "1.11", "alpha", {one: "pass", two: "crash"}, "1.11.0", night=2),
    ]
    gathered = gather(put_together(folders[2:]))
    past = past_of(gathered, folders[:2])
    assert [release.version for release in past.releases["alpha"]] == ["1.9.0", "1.10.0", "1.11.0"]
    since = past.since["alpha"]
    assert (since.version, since.words) == ("1.10.0", "1 regression, 1 fix")
    assert [changed.kind for changed in since.changed] == ["regression", "fix"]
    cast, mean = timeline(past, [CAST, MEAN])
    assert [[cell and (cell.mark.share, cell.step) for cell in own] for own in cast.cells] == [
        [("unsupported", ""), ("0%", "better"), ("100%", "better")]
    ]
    assert [[cell and (cell.mark.share, cell.step) for cell in own] for own in mean.cells] == [
        [("100%", ""), ("100%", ""), ("0%", "worse")]
    ]


def test_a_history_makes_the_same_timeline_as_the_runs_in_it(tmp_path: Path) -> None:
    one, two = case(CAST), case(MEAN)
    folders = [
        run(tmp_path / "old", "alpha", {one: "wrong-value", two: "pass"}, "1.0", night=1),
        run(tmp_path / "new", "alpha", {one: "pass", two: "pass"}, "2.0", night=2),
    ]
    for folder in folders:
        add(tmp_path / "h.duckdb", [folder])
    gathered = gather(put_together(folders[1:]))
    by_runs, by_history = past_of(gathered, folders[:1]), past_of(gathered, history=tmp_path / "h.duckdb")
    assert by_runs.since == by_history.since
    assert timeline(by_runs, [CAST, MEAN]) == timeline(by_history, [CAST, MEAN])
    assert by_runs.since["alpha"].words == "1 fix"


@pytest.mark.slow
def test_releases_beside_one_another_in_the_site_make_a_timeline(tmp_path: Path) -> None:
    names = {"alpha==1.0": "wrong-value", "alpha": "pass"}
    kept = [result(outcome, case(CAST), name, detail="d") for name, outcome in names.items()]
    folder = write_folder(tmp_path / "run", kept, versions={"alpha==1.0": "1.0", "alpha": "2.0"}, **PLAN)
    write_site(put_together([folder]), tmp_path / "site")
    text = (tmp_path / "site" / "timeline.html").read_text()
    assert re.findall(r'<th scope="col"[^>]*>([\d.]+)</th>', text) == ["1.0", "2.0"]
    assert "cases.html?operator=onnx/Cast-13&amp;backend=alpha%3D%3D1.0&amp;outcome=failed" in text


@pytest.mark.slow
def test_one_release_makes_no_timeline(tmp_path: Path) -> None:
    write_site(put_together([run(tmp_path / "run", "alpha", {case(CAST): "pass"})]), tmp_path / "site")
    assert not (tmp_path / "site" / "timeline.html").exists()
    assert "timeline" not in (tmp_path / "site" / "index.html").read_text()


@pytest.mark.slow
def test_the_search_knows_backends_and_operator_versions(tmp_path: Path) -> None:
    write_site(put_together([run(tmp_path / "run", "alpha", {case(CAST): "pass"})]), tmp_path / "site")
    told = re.fullmatch(r"opconform.takeSearch\((.*)\);\n", (tmp_path / "site" / "data" / "search.js").read_text())
    assert told is not None
    assert json.loads(f"[{told[1]}]") == [
        [["alpha 1.0", "backends/alpha.html"]],
        [["onnx/Cast-13", "operators/onnx-Cast-13.html"]],
    ]


@pytest.mark.parametrize("given", [["--before", "{old}"], ["{old}"]])
def test_two_whole_runs_of_one_backend_are_refused_with_the_way_to_show_both(tmp_path: Path, given: list[str]) -> None:
    old = run(tmp_path / "old", "alpha", {case(CAST): "pass"}, "1.0")
    new = run(tmp_path / "new", "alpha", {case(CAST): "pass"}, "2.0")
    named = [word.format(old=old) for word in given]
    done = CliRunner().invoke(main, ["report", str(new), *named])
    assert done.exit_code == 2
    assert ("--before: shown in the site of --html" if len(given) == 2 else "use --before") in done.output
