"""What `run.json` tells of a run."""

from __future__ import annotations

import datetime as dt
import json
import platform
from types import SimpleNamespace

import pytest

import opconform
from opconform.cases.elements import Declaration
from opconform.cases.ids import Selection
from opconform.cli.options import RunOptions
from opconform.cli.session import Plan, Session
from opconform.reports.runs import Terms
from opconform.runners.execution.host import About
from opconform.runners.judging.terms import Demands, Errata, Erratum, Profile, Suspensions
from opconform.runners.registry import BackendSpec


def described() -> dict[str, object]:
    suspensions = Suspensions(Errata((Erratum("E1", "x/y#z", "d", "l", "0"),), "e"), {"onnx/A#b": ""})
    demands = Demands({"flush": "none"}, Profile("edge", "2", {}, digest="p"))
    selection = Selection(("onnx/*",), None)
    session = Session(
        RunOptions(selection=selection),
        executor=SimpleNamespace(description=dict),
        backends=(BackendSpec("alpha", "python", "alpha"),),
        suite=SimpleNamespace(digest="d" * 64, to_dict=lambda: None),
        terms=Terms(demands, suspensions, declaration=Declaration(digest="a")),
        plans={"alpha": Plan(selection, None, 1)},
        abouts={"alpha": About("1.2", (), {"device": "cpu"})},
        command=["opconform", "run", "alpha"],
        started=dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    )
    return session.description()


def test_a_description_tells_all_that_decides_the_results() -> None:
    told = json.loads(json.dumps(described(), allow_nan=False))
    assert told["suite"] == {"version": opconform.__version__, "digest": "d" * 64}
    alpha = {"version": "1.2", "name": "alpha", "standards": [], "facts": {"device": "cpu"}}
    assert told["backends"] == {"alpha": alpha}
    assert told["started"] == "2026-01-02T03:04:05+00:00"
    assert told["strength"] == "full"
    assert told["profile"] == {"name": "edge", "version": "2", "digest": "p"}
    assert told["arithmetic"] == {"digest": "a"}
    assert told["waivers"] is None
    assert told["errata"] == {"digest": "e", "ids": ["E1"]}
    assert told["disputed"] == {"onnx/A#b": None}
    assert told["machine"]["libraries"].keys() >= {"numpy", "onnx"}


def test_a_description_names_no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    named = platform.uname()._replace(node="secret-host")
    monkeypatch.setattr(platform, "uname", lambda: named)
    monkeypatch.setattr(platform, "node", lambda: "secret-host")
    assert "secret-host" not in json.dumps(described())
