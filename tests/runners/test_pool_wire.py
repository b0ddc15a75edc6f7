"""Messages between the pool and its workers: whole however they are cut, and damage is noticed."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from opconform.runners.pool.wire import Corrupt, Frame, FrameReader, FrameWriter

frames = st.builds(Frame, *(st.integers(0, 2**32 - 1) for _ in range(4)), st.binary(max_size=50))


@given(st.lists(frames, max_size=5), st.integers(1, 60))
def test_messages_arrive_whole_however_they_are_cut(sent: list[Frame], size: int) -> None:
    reader, stream = FrameReader(), packed(sent)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == sent


@given(st.lists(frames, min_size=1, max_size=5), st.integers(0, 10_000), st.integers(1, 255), st.booleans())
def test_a_byte_changed_or_put_in_never_makes_another_message(
    sent: list[Frame], at: int, change: int, put_in: bool
) -> None:
    stream = bytearray(packed(sent))
    at %= len(stream)
    stream[at : at + (not put_in)] = bytes([stream[at] ^ change])
    came: list[Frame] = []
    with contextlib.suppress(Corrupt):
        came.extend(FrameReader().feed(bytes(stream)))
    assert came == sent[: len(came)]
    assert len(came) < len(sent)


def packed(sent: list[Frame]) -> bytes:
    writer = FrameWriter()
    return b"".join(writer.pack(frame) for frame in sent)
