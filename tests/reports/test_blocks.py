"""Results that a worker tells of together tell what they tell one by one, and are read only where they are whole."""

from __future__ import annotations

import datetime as dt
import functools
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from fakes import backends
from fakes.results import result
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.results import Outcome, Result
from opconform.generators.source import GeneratedCases
from opconform.reports.blocks import ResultBlock, TellTogether, read_block
from opconform.reports.folder import companions
from opconform.reports.junit_cases import TestCases
from opconform.reports.passing import Passes
from opconform.reports.tables import Tables, Terms
from opconform.runners.accuracy import attach_accuracy
from opconform.runners.attaching import Attach
from opconform.runners.demands import Demands
from opconform.runners.execute import Worker
from opconform.runners.kept import KeepOutputs
from opconform.runners.pool_wire import Several
from opconform.runners.running import judged_of
from opconform.specs.errata import Suspensions

SOURCE = GeneratedCases()
FILLS = (
    "onnx/ReduceMean-13/float32/3x2x2/axes=1{}/uniform",
    "onnx/ReduceMean-13/uint32/3x2x2/axes=1{}/uniform",
    "onnx/ReduceMean-13/float16/3x2x2/axes=1{}/overflow",
    "onnx/Mean-13/float64/2*3x2/{}/special",
    "onnx/ReduceMean-13/float32/3x2x2/axes=0,1,2{}/lattice",
)
KEYS = [
    fill.format("" if "{}/special" not in fill else f"draw={k}" if k else "-")
    if not k or "special" in fill
    else fill.format(f";draw={k}")
    for fill in FILLS
    for k in range(24)
]
NAMES = ("Right", "WrongOnUint32", "WrongShape", "Flushes", "Raises", "RefusesTypes", "RefusesEverything", "LeaksState")


ALIKE = {"WrongShape": 0, "LeaksState": 24}
"""How many results are told together at least, where it is another number than most."""


def worked(name: str, blocks: TellTogether | None, attach: dict[str, Attach]) -> Iterator[tuple[list[str], Any]]:
    """Yield what a worker tells, with the cases that it is about."""
    worker = Worker(getattr(backends, name)(), "fake", SOURCE, {}, attach, blocks)
    place = 0
    for record in worker.run(KEYS, lambda _index, _phase: None):
        count = record.amount if isinstance(record, Several) else 1
        yield KEYS[place : place + count], record
        place += count
    assert place == len(KEYS)


class Taken:
    """What a run makes of what its workers tell."""

    def __init__(self) -> None:
        terms = Terms()
        self.tables = Tables.of(terms, ["fake"], dt.date(2026, 1, 1))
        self.aside = io.BytesIO()
        self.aside.name = "aside"  # type: ignore[misc]
        self.cases = TestCases(self.aside, terms.demands, terms.suspensions)
        self.lines: list[str] = []
        self.beside: list[bytes] = []
        self.together = 0

    def take(self, ids: Sequence[str], record: bytes | Several) -> None:
        if isinstance(record, Several):
            block = read_block(ids, record.record)
            self.tables.take_alike(block.alike)
            self.cases.take_block(block)
            self.lines += block.lines.decode().split("\n")
            self.beside += block.accuracy.split(b"\n") if block.accuracy else []
            self.together += len(ids)
            return
        judged = judged_of(record)
        taken = self.tables.take(judged.result, judged.attachments)
        self.cases.add(taken)
        assert judged.line is not None
        self.lines.append(judged.line.decode())
        self.beside += [line for _, line in companions(judged, judged.line, set())]

    def told(self) -> dict[str, Any]:
        failures = [(a.first.case, a.count, a.operator_versions) for a in self.tables.failures.first(50)]
        texts = [b"".join(self.cases.texts(suite)).decode() for suite in self.cases.suites()]
        return {
            "lines": [re.sub(r'"seconds":[^}]+', "", line) for line in self.lines],
            "beside": self.beside,
            "tables": self.tables.to_dict([]),
            "behaviours": self.tables.behaviours.to_dict(),
            "failures": failures,
            "suites": [(s.backend, s.operator_version, s.verdicts) for s in self.cases.suites()],
            "junit": [re.sub(r'time="[^"]+"', "", text) for text in texts],
        }


@pytest.mark.parametrize("name", NAMES)
def test_results_told_together_make_what_they_make_one_by_one(name: str) -> None:
    together, alone = Taken(), Taken()
    for taken, blocks in ((together, TellTogether()), (alone, None)):
        for ids, record in worked(name, blocks, {"accuracy": attach_accuracy}):
            taken.take(ids, record)
    assert together.told() == alone.told()
    assert alone.together == 0
    assert together.together >= ALIKE.get(name, 72)


def test_results_with_more_beside_them_are_told_one_by_one() -> None:
    attach: dict[str, Attach] = {"accuracy": attach_accuracy, "outputs": KeepOutputs("all")}
    assert not [record for _, record in worked("Right", TellTogether(), attach) if isinstance(record, Several)]
    attach["outputs"] = KeepOutputs("failures")
    assert [record for _, record in worked("Right", TellTogether(), attach) if isinstance(record, Several)]


@functools.cache
def joint() -> tuple[list[str], bytes]:
    ids, record = next((i, r) for i, r in worked("Right", TellTogether(), {}) if isinstance(r, Several))
    return ids, record.record


@given(st.data())
def test_a_record_that_is_cut_or_about_others_is_none(data: st.DataObject) -> None:
    ids, record = joint()
    assert len(read_block(ids, record).seconds) == len(ids)
    with pytest.raises(ValueError, match="several results"):
        read_block(ids[:-1], record)
    cut = data.draw(st.integers(0, len(record) - 1))
    with pytest.raises(ValueError, match=r".+"):
        read_block(ids, record[:cut])


def test_test_cases_of_any_words_are_those_of_each_result() -> None:
    words = "]]> <b>&amp; '{case}' \x00 no"
    ids = [f"onnx/Mean-13/float32/<&\"'{k}>/-/uniform" for k in range(3)]
    templates = [result("pass", ""), result("error", "", "scripted", detail=words)]
    alike = [Passes(templates[n], ids[n], ids[n], count=c) for n, c in ((0, 2), (1, 1))]
    plain = [f"onnx/Mean-13/float32/3x{k}/-/uniform" for k in range(3)]
    for cases in (ids, plain):
        block = ResultBlock(cases, templates, [0, 1, 0], alike, [0.5, 0.25, 0.125], b"", b"")
        texts = []
        for told_together in (True, False):
            aside = io.BytesIO()
            found = TestCases(aside, Demands(), Suspensions())
            if told_together:
                found.take_block(block)
            else:
                for case, number, seconds in zip(cases, [0, 1, 0], block.seconds, strict=True):
                    told = json.loads(templates[number].to_json()) | {"case": case, "seconds": seconds}
                    found.add(Result(**{**told, "outcome": Outcome(told["outcome"]), "clauses": ()}))
            texts.append([(s.verdicts, s.seconds, b"".join(found.texts(s))) for s in found.suites()])
        if cases is plain:  # one suite a backend: a block is of one
            assert b"".join(t for *_, t in texts[0]).count(b"<testcase") == 3
        else:
            assert texts[0] == texts[1]
