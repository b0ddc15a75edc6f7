"""A host runs a backend for a judge that it knows nothing of; whatever it writes costs one request."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from fakes.backends import ONE
from fakes.programs import reduce_mean
from hypothesis import given
from hypothesis import strategies as st

from opconform.cases.elements import element_types
from opconform.runners.execution.host import Hosts, OurFailure, Request, Unreadable, read_about, read_answer
from opconform.runners.judging.answers import Answer
from opconform.runners.pool import Limits, Loss, WorkerStartError
from opconform.runners.registry import backend_spec

PROGRAM = reduce_mean(13, (2, 2), axes=(1,))
QUICK = Limits(run_seconds=1.0, prepare_seconds=5.0)


@pytest.fixture
def right() -> Iterator[Hosts]:
    with Hosts(backend_spec("python:fakes.backends:Right"), QUICK) as hosts:
        yield hosts


def request(*numbers: float) -> Request:
    return Request(0, PROGRAM, (np.array(numbers, np.float32).reshape(2, 2),))


def test_a_host_says_what_its_backend_is(right: Hosts) -> None:
    assert (right.about.version, right.about.standards) == ("1.0", ("onnx",))


def test_answers_come_by_the_places_of_their_requests(right: Hosts) -> None:
    first, second = right.ask([request(1, 3, 5, 7), request(2, 4, 6, 8)])
    for place, wanted in ((second, [[3], [7]]), (first, [[2], [6]])):  # in any order
        reply = right.reply(place)
        assert isinstance(reply.answer, Answer)
        assert reply.answer.outputs[0].tolist() == wanted
        assert reply.first is (place == first)


def test_a_program_that_has_run_is_shared_until_a_fresh_one_is_asked_for(right: Hosts) -> None:
    shared = request(1, 2, 3, 4)
    own = Request(0, PROGRAM, shared.inputs, "own")
    assert [right.reply(place).first for place in right.ask([shared, shared, own])] == [True, False, True]


def test_a_crash_costs_its_request_alone() -> None:
    with Hosts(backend_spec("python:fakes.backends:Crashes"), QUICK) as hosts:
        program = reduce_mean(13, ONE, type_="uint32", axes=(1,))
        dying = Request(0, program, (np.zeros(ONE, np.uint32),))
        others = reduce_mean(13, (3,), axes=(0,))
        three = np.arange(3, dtype=np.float32)
        asked = [Request(0, others, (three,)), dying, Request(0, others, (three + 1,))]
        found = [hosts.reply(place).answer for place in hosts.ask(asked)]
    assert isinstance(found[0], Answer)
    assert isinstance(found[1], Loss)
    assert found[1].exit == "signal SIGSEGV"
    assert "about to fall" in found[1].tail
    assert isinstance(found[2], Answer)


def test_programs_that_kill_their_process_together_are_halved_and_answer_alone() -> None:
    kinds = [*(("int32", size) for size in (2, 3, 4, 5)), ("float16", 2), *(("int32", size) for size in (6, 7, 8))]
    asked = [
        Request(0, reduce_mean(13, (size,), type_=type_, axes=(0,)), (np.full(size, 4, type_),), together=True)
        for type_, size in kinds
    ]
    with Hosts(backend_spec("python:fakes.fragile_backends:DiesTogether"), QUICK) as hosts:
        found = [hosts.reply(place) for place in hosts.ask(asked)]
        deaths = hosts.strays()
    assert [one.answer.outputs[0].tolist() for one in found if isinstance(one.answer, Answer)] == [[4]] * len(kinds)
    assert [one.together for one in found] == [True] * 4 + [False] * 2 + [True] * 2
    assert [death.exit for death in deaths] == ["signal SIGABRT"]  # one death that no program explains


def test_a_backend_that_runs_no_programs_does_not_run_them_together() -> None:
    programs = [reduce_mean(13, (size,), axes=(0,)) for size in (2, 3)]
    asked = [Request(0, one, (np.ones(one.leaves[0].dims, np.float32),), together=True) for one in programs]
    with Hosts(backend_spec("python:fakes.fragile_backends:InfersAlone"), QUICK) as hosts:
        found = [hosts.reply(place) for place in hosts.ask(asked)]
        deaths = hosts.strays()
    assert [one.answer.outputs[0].tolist() for one in found if isinstance(one.answer, Answer)] == ["float32[]"] * 2
    assert deaths == []


def test_what_a_backend_raises_together_costs_nothing() -> None:
    programs = [reduce_mean(13, (size,), axes=(0,)) for size in (2, 3)]
    asked = [Request(0, one, (np.ones(one.leaves[0].dims, np.float32),), together=True) for one in programs]
    with Hosts(backend_spec("python:fakes.fragile_backends:DiesTogether"), QUICK) as hosts:
        found = [hosts.reply(place) for place in hosts.ask(asked)]
    assert [(isinstance(one.answer, Answer), one.together) for one in found] == [(True, False)] * 2


def test_a_failure_after_a_run_is_tried_in_a_process_of_its_own() -> None:
    with Hosts(backend_spec("python:fakes.fragile_backends:SpoilsItsProcess"), QUICK) as hosts:
        found = [hosts.reply(place).answer for place in hosts.ask([request(1, 3, 5, 7), request(2, 4, 6, 8)])]
        deaths = hosts.strays()
    assert [one.outputs[0].tolist() for one in found if isinstance(one, Answer)] == [[[2], [6]], [[3], [7]]]
    assert {(death.exit, death.kind) for death in deaths} == {("exit code 70", "crash")}
    assert "object is not callable" in deaths[0].tail


def test_a_failure_of_a_new_process_is_ours() -> None:
    with Hosts(backend_spec("python:fakes.fragile_backends:FailsInItsHost"), QUICK) as hosts:
        found = [hosts.reply(place).answer for place in hosts.ask([request(1, 3, 5, 7), request(2, 4, 6, 8)])]
    assert [one.kind for one in found if isinstance(one, Loss)] == ["raised", "raised"]
    assert "object is not callable" in found[1].tail  # type: ignore[union-attr]


def test_a_backend_that_does_not_open_is_told_with_its_words() -> None:
    with pytest.raises(WorkerStartError, match="python:fakes"):
        Hosts(backend_spec("python:fakes.backends:NoSuchClass"), QUICK)


def test_a_library_that_is_missing_at_a_program_is_no_answer() -> None:
    found = read_answer(msgspec.msgpack.encode({"type": "failed", "words": "it is gone"}))
    assert found.answer == OurFailure("it is gone")


def outputs(**changes: object) -> bytes:
    tensor = ["float32", [2], struct.pack("<2f", 1.0, 2.0)]
    told = {"type": "answer", "outputs": [tensor], "structure": [], "first": True, "seconds": 0.25}
    return msgspec.msgpack.encode(told | changes)


def test_a_message_of_outputs_is_read() -> None:
    found = read_answer(outputs())
    assert isinstance(found.answer, Answer)
    assert (found.answer.outputs[0].tolist(), found.seconds, found.first) == ([1.0, 2.0], 0.25, True)


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xc1",
        b"\x91" * 4000,
        outputs()[:-3],
        outputs() + b"\x00",
        outputs(outputs=[["float32", [3], b"12345678"]]),
        outputs(outputs=[["float32", [-2], b"12345678"]]),
        outputs(outputs=[["float32", [1 << 62, 1 << 62], b""]]),
        outputs(outputs=[["string", [1], b"\xff\xff\xff\xff"]]),
        outputs(outputs=[["no type at all", [1 << 35], b""]]),
        *(outputs(outputs=[[type_, [1 << 39], b""]]) for type_ in sorted(element_types())),
        b"\x85\xa4type\xa6answer\xa7outputs\xdd\xff\xff\xff\xff",
        outputs(outputs="none"),
        outputs(structure=[["nothing"]]),
        msgspec.msgpack.encode({"type": "pass", "case": "onnx/ReduceMean-13"}),
        msgspec.msgpack.encode({"type": "about", "version": "1", "standards": ["onnx"], "facts": {}}),
    ],
)
def test_what_is_no_answer_is_unreadable(record: bytes) -> None:
    with pytest.raises(Unreadable):
        read_answer(record)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_unreadable(record: bytes) -> None:
    for read in (read_answer, read_about):
        with contextlib.suppress(Unreadable):
            read(record)


def test_an_answer_of_a_foreign_type_has_its_shape_and_takes_no_memory() -> None:
    answer = read_answer(outputs(outputs=[["no type at all", [1 << 20], b""]])).answer
    assert isinstance(answer, Answer)
    assert answer.outputs[0].shape == (1 << 20,)
    assert answer.outputs[0].strides == (0,)


@pytest.mark.parametrize("claim", [-1.0, float("nan"), float("inf")])
def test_a_time_that_is_none_counts_as_nothing(claim: float) -> None:
    assert read_answer(outputs(seconds=claim)).seconds == 0.0
