from __future__ import annotations

from fakes.results import case, result

from opconform.reports.tally import Behaviours, ChosenOptions, Contradiction, OptionEvidence

ROUNDING = "integer-rounding"


def joined(*options: list[str]) -> ChosenOptions:
    found = Behaviours()
    for index, option in enumerate(options):
        found.add(result(case=case(fill=f"f{index}"), behaviour={ROUNDING: option}))
    (taken,) = found.chosen()
    return taken


def test_one_option_alone_establishes_it_and_the_first_case_shows_it() -> None:
    taken = joined(["truncate", "floor"], ["floor"], ["floor"])
    assert (taken.backend, taken.operator_version, taken.silence) == ("alpha", "onnx/ReduceMean-13", ROUNDING)
    assert taken.established == (OptionEvidence("floor", 2, case(fill="f1")),)
    assert (taken.undecided, taken.broken) == (1, None)


def test_several_options_establish_none() -> None:
    taken = joined(["truncate", "floor"], ["truncate", "floor"])
    assert (taken.established, taken.undecided, taken.consistent) == ((), 2, True)


def test_two_options_established_are_inconsistent() -> None:
    taken = joined(["truncate"], ["floor"], ["truncate"])
    assert [(e.option, e.cases, e.first) for e in taken.established] == [
        ("truncate", 2, case(fill="f0")),
        ("floor", 1, case(fill="f1")),
    ]
    assert not taken.consistent


def test_no_option_that_does_for_every_case_is_inconsistent_even_if_none_is_established() -> None:
    assert not joined(["a", "b"], ["c", "d"]).consistent
    assert joined(["a", "b"], ["a"], ["b", "c"], ["d"]).broken == Contradiction(case(fill="f2"), ("b", "c"))


def test_evidence_is_kept_by_backend_operator_version_and_silence() -> None:
    found = Behaviours()
    found.add(result(behaviour={ROUNDING: ["floor"], "flush": ["none"], "invalid": []}))
    found.add(result(behaviour={ROUNDING: ["truncate"]}, backend="beta"))
    found.add(result(case=case("onnx/Mean-13"), behaviour={"flush": ["output"]}))
    assert [(t.backend, t.operator_version, t.silence) for t in found.chosen()] == [
        ("alpha", "onnx/ReduceMean-13", ROUNDING),
        ("alpha", "onnx/ReduceMean-13", "flush"),
        ("beta", "onnx/ReduceMean-13", ROUNDING),
        ("alpha", "onnx/Mean-13", "flush"),
    ]
    assert found.to_dict()["alpha"]["onnx/Mean-13"]["flush"] == {
        "options": {"output": {"cases": 1, "first": case("onnx/Mean-13")}},
        "undecided": 0,
        "consistent": True,
        "broken": None,
    }
