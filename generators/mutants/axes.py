"""Mutants of operators with axes: which are meant, how often each counts, and where the extents of 1 go."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ...cases.elements import Array
from ...cases.program import OperatorVersion, Output, Program, count
from ...specs.model import Spec, VersionSpec, Word
from .call import Call, Refused
from .implementation import Around, Compute, Implementation, Memory, finishing, refusing, rewriting
from .native import Working

_AXES = "axes"
_NOOP = "noop_with_empty_axes"
Listed = tuple[int, ...]


def axes_mutants(spec: Spec, version: VersionSpec) -> Iterator[Implementation]:
    """Yield the mutants about axes, if the version has such."""
    if version.signature.attribute(_AXES) is None and version.signature.input(_AXES) is None:
        return
    yield from _listed(version)
    yield from _several()
    yield from _nowhere(spec, version)
    yield from _extents()


def _mutant(name: str, text: str, around: Around, needs: str = "axes") -> Implementation:
    return Implementation(name, "axes", text, needs, around=around)


def _listed(version: VersionSpec) -> Iterator[Implementation]:
    """Yield other meanings of one listed axis."""
    yield _mutant(
        "negative-axes-off-by-one", "counts negative axes from -1, so that -1 is the last but one", _mapped(_off_by_one)
    )
    yield _mutant("negative-axes-absolute", "takes negative axes without their sign", _mapped(lambda a, _r: abs(a)))
    yield _mutant("negative-axes-as-zero", "takes negative axes as 0", _mapped(lambda a, _r: max(a, 0)))
    yield _mutant("axes-mirrored", "counts axes from the wrong end", _mapped(lambda a, r: r - 1 - a % r))
    yield _mutant("axes-one-too-far", "takes the axis after each", _mapped(lambda a, r: (a + 1) % r))
    if "axes-negative-early" not in version.silences:
        yield _mutant(
            "negative-axes-refused",
            "refuses negative axes",
            refusing(lambda call: any(a < 0 for a in axes_of(call) or ()), "a negative axis"),
            "axes, and a rule for negative ones",
        )
    if "axes-one" in version.clauses:
        yield _mutant(
            "scalar-axes-refused",
            "refuses axes that are a scalar",
            refusing(_is_scalar, "axes of rank 0"),
            "axes that may be a scalar",
        )
    yield _mutant(
        "axes-beyond-3-ignored",
        "ignores axes from 4 on",
        rewriting(lambda call: with_axes(call, tuple(a for a in _whole(call) if a < 4)) if _has(call) else call),
    )


def _several() -> Iterator[Implementation]:
    """Yield other meanings of several listed axes."""
    yield _mutant("first-axis-only", "reduces the first axis of several alone", _rewritten(lambda a: a[:1]))
    yield _mutant("last-axis-only", "reduces the last axis of several alone", _rewritten(lambda a: a[-1:]))
    yield _mutant(
        "axes-filled-in", "reduces all from the smallest axis to the largest", _normal(lambda a: _range(min(a), max(a)))
    )
    yield _mutant("unsorted-axes-cut", "stops at the first axis that is out of order", _normal(_ascending))
    yield _mutant(
        "unsorted-axes-refused",
        "refuses axes that are out of order",
        refusing(lambda call: _has(call) and list(_whole(call)) != sorted(_whole(call)), "axes out of order"),
    )
    yield _mutant(
        "axes-shift-while-reducing",
        "removes one axis after the other, the later ones counted in what is left",
        rewriting(_shifted),
    )
    yield _mutant("other-axes", "reduces the axes that are not listed", rewriting(_complement))
    yield Implementation(
        "count-of-first-axis",
        "axes",
        "divides by the extent of the first axis alone",
        "axes",
        Working(count=lambda _n, extents: extents[0]),
    )
    yield Implementation(
        "count-of-last-axis",
        "axes",
        "divides by the extent of the last axis alone",
        "axes",
        Working(count=lambda _n, extents: extents[-1]),
    )


def _nowhere(spec: Spec, version: VersionSpec) -> Iterator[Implementation]:
    """Yield other meanings of missing and empty axes, where the version says what they mean, and of repeated ones."""
    for word, is_it in (("absent", _is_absent), ("empty", _is_empty)):
        meanings = _meanings(spec, version, word)
        if "identity" in meanings:
            yield _mutant(
                f"{word}-axes-as-all",
                f"reduces all where axes are {word}, though that is the identity",
                rewriting(_taken(is_it, lambda rank: _range(0, rank - 1))),
                f"{word} axes that are the identity",
            )
        if "all" in meanings:
            yield _mutant(
                f"{word}-axes-as-identity",
                f"copies where axes are {word}, though that reduces all",
                _copying(is_it),
                f"{word} axes that reduce all",
            )
            for place, axis in (("first", 0), ("last", -1)):
                yield _mutant(
                    f"{word}-axes-as-{place}",
                    f"reduces the {place} dimension where axes are {word}, though that reduces all",
                    rewriting(_taken(is_it, _only(axis))),
                    f"{word} axes that reduce all",
                )
    if any("identity" in _meanings(spec, version, word) for word in ("absent", "empty")):
        yield from _copies()
    if version.signature.attribute(_NOOP) is not None:
        yield _mutant(
            "noop-wins-over-axes",
            f"copies wherever {_NOOP} is 1, axes or not",
            _copying(lambda call: call.attributes.get(_NOOP) == 1),
            f"an attribute {_NOOP}",
        )
    if "axes-duplicate" in version.silences:
        yield _mutant(
            "duplicate-axes-counted-twice",
            "divides by the extent of an axis as often as it is listed",
            _divided_again,
            "axes that may be listed twice",
        )
        yield _mutant(
            "duplicate-axes-cancel",
            "keeps an axis that is listed twice",
            _normal(lambda axes: tuple(a for a in axes if axes.count(a) == 1)),
            "axes that may be listed twice",
        )


def _only(axis: int) -> Callable[[int], Listed]:
    return lambda rank: (axis % rank,) if rank else ()


def _taken(when: Callable[[Call], bool], axes: Callable[[int], Listed]) -> Callable[[Call], Call]:
    """Return what takes other axes, by the rank, for those that are missing or empty."""
    return lambda call: with_axes(call, axes(_rank(call))) if when(call) and _rank(call) else call


def _copies() -> Iterator[Implementation]:
    needs = "axes that are the identity"
    yield Implementation(
        "copies-added-to-zero",
        "axes",
        "adds 0 to what it copies, so that -0 becomes 0",
        needs,
        Working(copied=lambda x: x + 0),
    )
    yield Implementation(
        "copies-nan-as-zero",
        "axes",
        "copies NaN as 0",
        needs,
        Working(copied=lambda x: np.where(np.isnan(x), x.dtype.type(0), x) if x.dtype.kind not in "iuO" else x),
    )


def _extents() -> Iterator[Implementation]:
    """Yield other places for the extents of 1."""
    yield _mutant("kept-extents-first", "puts the extents of 1 of reduced axes first", finishing(_kept_first))
    yield _mutant(
        "all-ones-dropped",
        "drops all extents of 1 where reduced ones are dropped",
        finishing(lambda call, out: out.reshape([d for d in out.shape if d != 1]) if out.ndim < _rank(call) else out),
    )
    yield _mutant(
        "last-extent-kept",
        "keeps an extent of 1 where everything is reduced and dropped",
        finishing(lambda call, out: out.reshape(1) if out.ndim == 0 and _rank(call) else out),
    )


def axes_of(call: Call) -> Listed | None:
    """Return the axes as they are listed; None where there are none."""
    given = call.attributes.get(_AXES)
    if given is None:
        array = call.others.get(_AXES)
        given = None if array is None else tuple(int(a) for a in array.reshape(-1))
    return given if given is None else tuple(int(a) for a in given)  # type: ignore[arg-type, union-attr]  # a list


def with_axes(call: Call, axes: Listed) -> Call:
    """Return the call with other axes, where it has them, or else where it may have them."""
    array, signature = call.others.get(_AXES), call.version.signature
    if signature.attribute(_AXES) is None and signature.input(_AXES) is None:
        return call
    if array is None and signature.attribute(_AXES) is not None:
        return call if call.attributes.get(_AXES) == axes else call.with_attribute(_AXES, axes)
    dtype = np.dtype(np.int64) if array is None else array.dtype
    changed = np.array(axes, dtype)
    if array is not None and array.ndim == 0 and changed.size == 1:
        changed = changed.reshape(())
    return call if array is not None and np.array_equal(array, changed) else call.with_input(_AXES, changed)


def _has(call: Call) -> bool:
    return bool(axes_of(call)) and bool(_rank(call))


def _rank(call: Call) -> int:
    return call.data[0].ndim if call.data else 0


def _whole(call: Call) -> Listed:
    """Return the axes counted from the front."""
    return tuple(a % _rank(call) for a in axes_of(call) or ())


def _valid(call: Call) -> bool:
    rank = _rank(call)
    return _has(call) and all(-rank <= a < rank for a in axes_of(call) or ())


def _is_scalar(call: Call) -> bool:
    array = call.others.get(_AXES)
    return array is not None and array.ndim == 0


def _is_absent(call: Call) -> bool:
    return axes_of(call) is None


def _is_empty(call: Call) -> bool:
    return axes_of(call) == ()


def _range(first: int, last: int) -> Listed:
    return tuple(range(first, last + 1))


def _off_by_one(axis: int, rank: int) -> int:
    return axis if axis >= 0 else (axis + rank - 1) % rank


def _mapped(change: Callable[[int, int], int]) -> Around:
    def changed(call: Call) -> Call:
        if not _valid(call):
            return call
        axes = axes_of(call) or ()
        return with_axes(call, tuple(dict.fromkeys(min(change(a, _rank(call)), _rank(call) - 1) for a in axes)))

    return rewriting(changed)


def _rewritten(change: Callable[[Listed], Listed]) -> Around:
    return rewriting(lambda call: with_axes(call, change(axes_of(call) or ())) if _valid(call) else call)


def _normal(change: Callable[[Listed], Listed]) -> Around:
    """Change axes that are counted from the front."""

    def changed(call: Call) -> Call:
        if not _valid(call):
            return call
        whole = _whole(call)
        new = change(whole)
        return call if set(new) == set(whole) and len(new) == len(whole) else with_axes(call, new)

    return rewriting(changed)


def _ascending(axes: Listed) -> Listed:
    kept = [axes[0]]
    for axis in axes[1:]:
        if axis < kept[-1]:
            break
        kept.append(axis)
    return tuple(kept)


def _shifted(call: Call) -> Call:
    if not _valid(call):
        return call
    left = list(range(_rank(call)))
    gone = []
    for axis in _whole(call):
        if axis >= len(left):
            raise Refused(f"axis {axis} of a tensor of rank {len(left)}")
        gone.append(left.pop(axis))
    return call if set(gone) == set(_whole(call)) else with_axes(call, tuple(gone))


def _complement(call: Call) -> Call:
    if not _valid(call):
        return call
    others = tuple(a for a in range(_rank(call)) if a not in _whole(call))
    return with_axes(call, others) if others else call


def _copying(when: Callable[[Call], bool]) -> Around:
    def around(_memory: Memory, call: Call, own: Compute) -> Array:
        out = own(call)  # refusals come first
        return call.data[0].copy() if when(call) else out

    return around


def _divided_again(_memory: Memory, call: Call, own: Compute) -> Array:
    out = own(call)
    if not _valid(call):
        return out
    axes = _whole(call)
    again = count(tuple(call.data[0].shape[a] for i, a in enumerate(axes) if a in axes[:i]))
    if again < 2:
        return out
    return (out // again if out.dtype.kind in "iu" else out / again).astype(out.dtype)


def _kept_first(call: Call, out: Array) -> Array:
    data = call.data[0]
    if out.ndim != data.ndim or out.shape == data.shape:
        return out
    gone = [d for d, whole in zip(out.shape, data.shape, strict=True) if d == 1 and whole != 1]
    return out.reshape([*gone, *(d for d, whole in zip(out.shape, data.shape, strict=True) if d != 1 or whole == 1)])


def _meanings(spec: Spec, version: VersionSpec, word: str) -> set[str]:
    """Return what missing or empty axes mean in a version, with each value of its switches: `all`, `identity`."""
    found: set[str] = set()
    data = np.zeros((3, 2), np.float32)
    program = Program(OperatorVersion("", "", 0), (), (), (Output("", "float32", None),))
    for noop in (Word.ABSENT, 0, 1) if version.signature.attribute(_NOOP) else (Word.ABSENT,):
        bare = Call(spec, version, {}, (data,), {}, frozenset(), program).with_attribute(_NOOP, noop)
        try:
            meant = (bare if word == "absent" else with_axes(bare, ())).readings
        except Refused:
            continue
        if len(meant) == 1 and meant[0].kind == "values":
            found.add("identity" if meant[0].copies else "all")
    return found
