from __future__ import annotations

import io

import pytest
from fakes.results import MEAN, case, invalid, result
from rich.console import Console

from opconform.cases.results import Outcome, Result
from opconform.cases.short import short_id
from opconform.reports.progress import RunProgress, tracked
from opconform.reports.tally import Behaviours, Failures, Tally
from opconform.reports.terminal import SECTIONS, Detail, Summary, print_summary
from opconform.runners.judging.terms import Demands

BEYOND = "onnx/ReduceMean-18/int64/1/axes=0/beyond-2^53"
LOCKED = "onnx/ReduceMean-18/int64/33x17/axes=0/large/quotient"
HOSTILE = "[bold]x[/bold] [/] \x1b[2J\x1b]0;t\x07 :smile: \u202e \r\b\x9b31m"
HOSTILE_SHOWN = "[bold]x[/bold] [/] \\x1b[2J\\x1b]0;t\\x07 :smile: \\u202e \\r\\x08\\x9b31m"


def summary(*results: Result, suspended: str | None = None, demands: Demands | None = None) -> Summary:
    tally, behaviours, failures = Tally(demands), Behaviours(), Failures(demands)
    for one in results:
        tally.add(one, suspended)
        behaviours.add(one)
        failures.add(one, suspended)
    return Summary(tally, behaviours, failures, tally.exit_code(), {"alpha": "1.31.1"})


def printed(told: Summary, width: int = 80, terminal: bool = False, detail: Detail = SECTIONS) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, color_system=None, legacy_windows=False)
    print_summary(console, told, detail)
    return out.getvalue()


def test_a_failure_says_what_to_do_next() -> None:
    told = summary(
        result(
            "wrong-value",
            case=BEYOND,
            detail="element [0]: got 9007199254740992, want 9007199254740993 exactly (1 of 1 wrong)",
            clauses=("onnx/ReduceMean#mean", "onnx/ReduceMean#output-type"),
        )
    )
    told.clause_text = lambda operator_version, clause: f"{operator_version} {clause}: the mean"
    assert printed(told).startswith(
        f"wrong-value  {BEYOND}  on alpha 1.31.1\n"
        "  clause mean: onnx/ReduceMean-18 onnx/ReduceMean#mean: the mean (also output-type)\n"
        "  element [0]: got 9007199254740992, want 9007199254740993 exactly (1 of 1 wrong)\n"
        f"  reproduce: opconform run alpha --select '{BEYOND}'\n\n"
    )


def test_a_failure_of_onnxruntime_is_reproduced_by_its_own_library_alone() -> None:
    for backend, more in (("onnxruntime", "| python"), ("onnxruntime-noopt", "--full | python - --noopt")):
        text = printed(summary(result("wrong-value", case=BEYOND, backend=backend)))
        assert f"  reproduce: opconform show --script '{BEYOND}' {more}\n" in text


def test_the_line_to_copy_is_never_broken() -> None:
    long = case(fill="f" * 200)
    for terminal in (False, True):
        assert f"--select '{long}'\n" in printed(summary(result("error", case=long)), 40, terminal)


def test_the_three_figures_stand_apart() -> None:
    results = [result(), result("wrong-value"), result("unsupported"), invalid("pass"), invalid("accepted-invalid")]
    text = printed(summary(*results))
    assert "  correctness    50%  1 of 2 valid cases judged" in text
    assert "  support      66.6%  2 of 3 valid cases" in text
    assert "  refusal        50%  1 of 2 invalid inputs refused" in text
    assert "declared" not in text


def test_declared_passes_are_a_figure_beside_the_strict_ones() -> None:
    told = summary(result(), result(level="declared"))
    told.declared = True
    text = printed(told)
    assert "  correctness     50%  1 of 2 valid cases judged" in text
    assert "    as declared  100%  2 of 2 valid cases judged, under declared arithmetic" in text
    assert "onnx/ReduceMean-13  float32     1/2      50%      100%     100%        \N{EN DASH}" in text


def test_types_with_the_same_figures_share_a_row() -> None:
    good = [result(case=case(types=t)) for t in ("float16", "float32", "float64")]
    bad = [result("wrong-value", case=case(types="int64"))]
    text = printed(summary(*good, *bad, result(case=case("onnx/Mean-13"))), width=100)
    rows = [line.split() for line in text.splitlines() if "float" in line or "int64" in line][-3:]
    assert rows == [
        ["onnx/Mean-13", "float32", "1/1", "100%", "100%", "\N{EN DASH}"],
        ["onnx/ReduceMean-13", "float16", "float32", "float64", "3/3", "100%", "100%", "\N{EN DASH}"],
        ["int64", "0/1", "0%", "100%", "\N{EN DASH}"],
    ]


def test_a_silence_is_told_once_for_the_versions_that_do_the_same() -> None:
    results = [
        result(
            case=case(f"onnx/ReduceMean-{version}"), behaviour={"flush": ["none"], "accumulator": ["wide", "narrow"]}
        )
        for version in (11, 13)
    ]
    text = printed(summary(*results, invalid("pass")))
    assert "onnx/ReduceMean 11, 13  flush    none" in text
    assert "these cases cannot tell: accumulator" in text
    assert "rejected" not in text  # a figure of its own


def test_an_inconsistent_silence_names_a_case_for_each_option() -> None:
    results = [
        result(case=case(fill="nan"), behaviour={"flush": ["none"]}),
        result(case=case(fill="ramp"), behaviour={"flush": ["output"]}),
    ]
    text = printed(summary(*results))
    assert "none or output: differs by case" in text
    assert f"  none (1 case), first {case(fill='nan')}\n  output (1 case), first {case(fill='ramp')}\n" in text


def test_a_silence_that_a_case_contradicts_names_it_though_it_establishes_no_option() -> None:
    results = [
        result(case=case(fill="nan"), behaviour={"flush": ["none"]}),
        result(case=case(fill="ramp"), behaviour={"flush": ["output", "input-and-output"]}),
    ]
    text = printed(summary(*results))
    assert "none: differs by case" in text
    assert f"  none (1 case), first {case(fill='nan')}\n  output or input-and-output in {case(fill='ramp')}\n" in text


@pytest.mark.parametrize("terminal", [False, True])
def test_hostile_text_shows_as_text(terminal: bool) -> None:
    hostile = f"onnx/Op-1/{HOSTILE}/1/-/ramp"
    told = summary(
        result(
            "error",
            case=hostile,
            backend=HOSTILE,
            detail=f"{HOSTILE}\n{HOSTILE}",
            clauses=(f"x#{HOSTILE}",),
            behaviour={HOSTILE: [HOSTILE], "flush": ["none"]},
        ),
        suspended=None,
    )
    told.versions = {HOSTILE: HOSTILE}
    told.problems = [HOSTILE]
    told.folders = [HOSTILE]
    told.clause_text = lambda *_: HOSTILE
    text = printed(told, 400, terminal)
    assert text.count(HOSTILE_SHOWN) >= 10
    assert not [c for c in text if not c.isprintable() and c not in "\n" + "\x1b" * terminal]
    assert "\x1b[2J" not in text
    assert "\x1b]" not in text


def test_a_long_detail_is_cut_and_says_so() -> None:
    text = printed(summary(result("crash", detail="\n".join(f"frame {n}" for n in range(20)))))
    assert "  frame 7\n  … 12 more lines in results.jsonl\n" in text
    assert "frame 8" not in text
    assert "x…\n" in printed(summary(result("crash", detail="x" * 5000)))


def test_tables_fit_the_width() -> None:
    results = [result(case=case(types=f"float{n}")) for n in range(40)] + [
        result("wrong-value", case=case(types="int8"))
    ]
    told = summary(*results, *[result(o) for o in ("unsupported", "timeout", "crash")])
    told.declared = True
    for width in (80, 120):
        tables = printed(told, width).partition("alpha 1.31.1: ")[2].rpartition("non-conformant")[0]
        assert max(map(len, tables.splitlines())) <= width
        assert all(f"float{n}" in tables for n in range(40))


@pytest.mark.parametrize(
    ("results", "ending"),
    [
        ([result()], "conformant: 1 result"),
        ([result(), result("error")], "non-conformant: 1 failure of 1 kind in 2 results"),
        (
            [result("unsupported")],
            "nothing was judged of alpha 1.31.1, so this is not a success: 1 result",
        ),
        (
            [result("runner-error")],
            "our side failed: see runner-error, and report it: 1 failure of 1 kind in 1 result",
        ),
    ],
    ids=lambda value: "+".join(r.outcome for r in value) if isinstance(value, list) else "",
)
def test_the_last_line_is_the_verdict(results: list[Result], ending: str) -> None:
    assert printed(summary(*results)).splitlines()[-1] == f"{ending} of 1 operator version"


def test_problems_suspensions_and_the_folder_are_told_at_the_end() -> None:
    told = summary(result("wrong-value"), suspended="erratum E1")
    told.problems, told.folders, told.exit_code, told.seconds = ["waivers.yaml:12: stale"], ["out"], 1, 61.24
    assert printed(told).splitlines()[-4:] == [
        "non-conformant: 1 result of 1 operator version in 61.2 s",
        "waivers.yaml:12: stale",
        "suspended: 1 result, erratum E1",
        "results: out",
    ]


def test_a_backend_without_results_is_told() -> None:
    told = summary(result())
    told.tally = Tally(backends=["alpha", "beta"])
    assert "beta: no results\n" in printed(told)


def test_the_whole_summary_has_every_kind_of_failure_and_the_brief_one_the_three_worst() -> None:
    words = "abcdefghijklmnop"
    errors = [result("error", case=case(), detail=word) for word in words]
    told = summary(*errors, result("wrong-value"), result("crash"), result("crash", case=case(fill="nan")))
    assert printed(told).count("reproduce: ") == len(words) + 2
    brief = printed(told, detail="brief").splitlines()
    titles = [line.split()[0] for line in brief if "  on alpha" in line]
    assert titles == ["crash", "wrong-value", "error"]
    assert "reproduce" not in printed(told, detail="figures")
    assert "non-conformant: 19 failures of 18 kinds in 19 results" in printed(told, detail="figures")


LONG = (
    "onnx/Op-1/float32/" + "x".join("3" * 40) + "/" + ";".join(f"attribute{n:02}=1,2,3,4" for n in range(12)) + "/ramp"
)


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("length", [0, 1])
def test_the_brief_summary_of_a_backend_fits_a_screen_and_names_the_command_for_the_rest(
    terminal: bool, length: int
) -> None:
    outcomes = ["crash", "timeout", "wrong-value", "wrong-shape", "wrong-dtype", "error", "accepted-invalid"]
    names = [case(f"onnx/Op-{n}", fill=LONG if length else "ramp") for n in range(30)]
    results = [
        result(outcome, case=name, detail="\n".join(["of more than one row " * 9] * 30), clauses=("onnx/Op#clause",))
        for outcome in outcomes
        for name in names
    ]
    told = summary(*results, result(behaviour={"flush": ["none"]}))
    told.clause_text = lambda *_: "which says a lot " * 20
    told.problems, told.folders = [f"waivers.yaml:{n}: stale" for n in range(30)], ["my results"]
    told.tally.suspensions.update({f"erratum {n}": 1 for n in range(30)})
    text = printed(told, terminal=terminal, detail="brief")
    rows = sum(max(1, -(-len(line) // 80)) for line in text.splitlines()) if terminal else len(text.splitlines())
    assert rows <= 40
    assert text.count("reproduce: ") == 3 - terminal * (1 + length)
    assert "  correctness  0.4%  1 of 211 valid cases judged" in text
    assert "suspended: 30 results, for 30 reasons" in text
    assert "and 25 more problems" in text
    kinds, site = text.splitlines()[-2:]
    assert kinds == "kinds:   opconform report 'my results' --kinds"
    assert site == "site:    opconform report 'my results' --html site"
    assert "where the standard is silent" not in text


def test_the_screen_of_a_failing_run_begins_with_the_verdict_and_the_operators_that_fail() -> None:
    results = [
        result("wrong-value", case=case(f"onnx/Op{n:02}-{version}"))
        for n in range(12)
        for version in (7, 13)
        for _ in "ab"
    ]
    told = summary(*results, result("crash", case=case("onnx/Last-1")), result("error", case=case("onnx/Op03-7")))
    lines = printed(told, detail="brief").splitlines()
    assert lines[0].startswith("non-conformant: 50 failures of 14 kinds in 50 results")
    start = next(n for n, line in enumerate(lines) if line.startswith("operator"))
    rows = [line.split(maxsplit=3) for line in lines[start + 1 : start + 11]]
    assert rows[:3] == [
        ["onnx/Last", "1", "crash", "1"],
        ["onnx/Op03", "5", "wrong-value", "7, 13"],
        ["onnx/Op00", "4", "wrong-value", "7, 13"],
    ]
    assert lines[start + 11] == "and 3 more operators with 12 failures"


@pytest.mark.parametrize("backends", [1, 3])
def test_a_long_message_is_wrapped_on_a_narrow_terminal_with_any_number_of_backends(backends: int) -> None:
    message = " ".join(f"word{n}" for n in range(25))
    names = ["alpha", "beta", "gamma"][:backends]
    told = summary(*(result("error", backend=name, case=case(fill=name), detail=message) for name in names))
    text = printed(told, width=60, terminal=True, detail="brief")
    assert " ".join(text.split()).count(message) == backends


def test_an_id_that_would_wrap_is_printed_in_its_short_form() -> None:
    told = summary(result("wrong-value", case=LOCKED, backend="onnxruntime"))
    wide, narrow = (printed(told, width=width, terminal=True, detail="brief") for width in (200, 60))
    assert f"wrong-value  {LOCKED}  on onnxruntime" in wide
    assert f"wrong-value  {short_id(LOCKED)}  on onnxruntime" in narrow
    assert f"reproduce: opconform show --script '{short_id(LOCKED)}' | python" in narrow


def test_each_section_is_shown_on_its_own() -> None:
    told = summary(result("error", detail="no"), result(behaviour={"flush": ["none"]}))
    shown = {name: printed(told, detail=frozenset({name})) for name in SECTIONS}
    assert [name for name in sorted(shown) if "reproduce: " in shown[name]] == ["kinds"]
    assert [name for name in sorted(shown) if "operator version " in shown[name]] == ["operators"]
    assert [name for name in sorted(shown) if "where the standard is silent" in shown[name]] == ["statistics"]


def test_what_two_backends_do_alike_is_said_once() -> None:
    found = [
        one
        for name in ("alpha", "beta", "gamma")
        for one in (
            result("wrong-value" if name != "gamma" else "pass", case=BEYOND, backend=name, detail="got 1, want 2"),
            result(case=MEAN, backend=name, behaviour={"flush": ["none"] if name != "gamma" else ["output"]}),
        )
    ]
    told = summary(*found)
    text = printed(told)
    assert f"wrong-value  {BEYOND}  on alpha 1.31.1 and beta\n" in text
    assert text.count("reproduce: ") == 1
    assert "alpha 1.31.1 and beta, where the standard is silent\n" in text
    assert "gamma, where the standard is silent\n" in text
    assert "  beta: as alpha\n" in text
    assert "alpha  gamma\n" in text


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_progress_without_a_terminal_is_a_few_plain_lines() -> None:
    out, clock = io.StringIO(), Clock()
    with RunProgress(Console(file=out, width=40), 1000, clock) as progress:
        for n in range(1000):
            clock.now += 0.001
            progress.count(Outcome.PASS if n % 10 else Outcome.WRONG_VALUE)
    assert out.getvalue().splitlines() == [
        "250 of 1,000 cases, 1,000/s: 225 pass, 25 wrong-value",
        "500 of 1,000 cases, 1,000/s: 450 pass, 50 wrong-value",
        "750 of 1,000 cases, 1,000/s: 675 pass, 75 wrong-value",
        "1,000 of 1,000 cases, 1,000/s: 900 pass, 100 wrong-value",
    ]


def test_progress_tells_about_how_long_a_run_takes_from_now_on() -> None:
    out, clock = io.StringIO(), Clock()
    with RunProgress(Console(file=out, width=40), 1200, clock) as progress:
        for _ in range(1200):
            clock.now += 0.5
            progress.count(Outcome.PASS)
    lines = out.getvalue().splitlines()
    assert "300 of 1,200 cases, 2/s, about 8 min left: 300 pass" in lines
    assert "1,140 of 1,200 cases, 2/s, about 30 s left: 1,140 pass" in lines
    assert lines[-1] == "1,200 of 1,200 cases, 2/s: 1,200 pass"


def test_progress_of_an_unknown_number_of_slow_cases_speaks_every_half_minute() -> None:
    out, clock = io.StringIO(), Clock()
    with RunProgress(Console(file=out), None, clock) as progress:
        for _ in range(100):
            clock.now += 1
            progress.count(Outcome.PASS)
    assert [line.split(" cases")[0] for line in out.getvalue().splitlines()] == ["30", "60", "90"]


def test_progress_in_a_terminal_shows_the_counts_and_leaves_the_screen_as_it_was() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    with RunProgress(console, 2) as progress:
        progress.count(Outcome.PASS)
        progress.count(Outcome.CRASH)
    text = out.getvalue()
    assert "2 of 2 cases" in text
    assert "1 pass, 1 crash" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor comes back


def test_progress_gives_the_screen_back_when_interrupted() -> None:
    out = io.StringIO()

    def interrupted() -> None:
        with RunProgress(Console(file=out, force_terminal=True), 2):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert out.getvalue().count("\x1b[?25h") == 1


def test_what_takes_long_shows_how_far_it_is_and_leaves_nothing_behind() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, color_system=None)
    with tracked(iter(range(3)), "planning", 3, console) as items:
        assert list(items) == [0, 1, 2]
        console.print("between")
    text = out.getvalue()
    assert "planning" in text
    assert "of 3" in text
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_progress_is_gone_whatever_ends_the_work() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True)

    def interrupted() -> None:
        with tracked(iter(range(3)), "planning", console=console) as items:
            for _ in items:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert out.getvalue().count("\x1b[?25h") == 1


def test_progress_is_for_terminals_alone() -> None:
    out = io.StringIO()
    with tracked(iter(range(3)), "planning", 3, Console(file=out)) as items:
        assert list(items) == [0, 1, 2]
    assert out.getvalue() == ""
