"""Operators that weight values by the match of keys and queries: Attention, FlexAttention."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ...cases.elements import Array, element_type
from ...cases.program import Body
from ...specs.model import Word
from ..arithmetic.tape import Call, Value
from ..fills import Blank, Draw, Drawing
from . import Shaping
from .control import run
from .normalization import along

_PRECISIONS: Mapping[int, str] = MappingProxyType({1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"})


def attention(
    c: Call,
    q: Value,
    k: Value,
    v: Value,
    mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    lengths: Value | None = None,
) -> tuple[Value, Value, Value, Value]:
    """Weighted sums of values, by the softmax over keys of scaled products of queries and keys and a bias.

    q: [B, H, S, D], k: [B, G, L, D], v: [B, G, L, E], or [B, S, H D] and so on; mask: stretched to [B, H, S, P + L];
    past_key: [B, G, P, D], past_value: [B, G, P, E]; lengths: int64 [B], the number of valid keys out of L. Results:
    [B, H, S, E] or [B, S, H E], keys and values including the past, and one stage of the weights, [B, H, S, P + L].
    Source: ONNX Attention-23 to 25.
    """
    flat = q.rank == len(("B", "S", "HD"))
    q, k, v = _headed(c, q, k, v)
    past = _state(c, k, v, past_key, past_value, lengths)
    if past_key is not None and past_value is not None:
        k, v = past_key.concat([k], 2), past_value.concat([v], 2)
    present = k, v
    k, v = _shared(q, k, v)
    scores = _scores(c, q, k)
    capped = _capped(c, scores)
    shape = (*scores.shape[:2], q.shape[2], k.shape[2])
    bias, off = _mask(c, mask, lengths, shape, q.type)
    for hidden in _hidden(c, lengths, shape, past):
        off = hidden if off is None else off | hidden
    biased = capped if bias is None else capped + bias
    nothing, zero = c.constant(-math.inf, q.type), c.constant(0.0, q.type)
    if off is not None:
        biased = nothing.where(off, biased)
    alone = _alone(off, bias, shape)
    p = _softmax(c, biased if alone is None else zero.where(alone, biased))
    if alone is not None:
        p = zero.where(alone, p)
    y = _summed(c, p, v)
    if off is not None:
        lost = off & ((capped.isnan() | capped.isinf(negative=False)) | _strange(v))
        y = y.undefined(_any(lost), "not-attended")
    c.require("output-mode", c.attr("qk_matmul_output_mode") in range(4))
    stage = (scores, capped, biased, p)[c.attr("qk_matmul_output_mode")]
    if flat:
        y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])
    return y, *present, stage.broadcast(*shape)


def flex_attention(c: Call, q: Value, k: Value, v: Value) -> Value:
    """Attention without a bias, with bodies that modify scores and weights.

    q: [B, H, S, D], k: [B, G, L, D], v: [B, G, L, E]; result: [B, H, S, E]. Source: ONNX FlexAttention-1, preview.
    """
    c.require("ranks", q.rank == k.rank == v.rank == len("BHSD"))
    _fitting(c, q, k, v)
    number = c.attr("softmax_precision", 11 if q.type == "float64" else 1)
    c.require("precision-known", number in _PRECISIONS)
    to = _PRECISIONS[number]
    k, v = _shared(q, k, v)
    x = _modified(c, "score_mod", _scores(c, q, k).cast(to))
    alone = _alone(None, x, x.shape)
    if alone is not None and c.open("no-key", alone) == "zeros":
        zero = c.constant(0.0, to)
        p = zero.where(alone, along(c, zero.where(alone, x), 3))
    else:
        p = along(c, x, 3)
    p = _modified(c, "prob_mod", p)
    y = (p @ v.cast(to)).cast(v.type)
    return y if to == v.type else y.either(p.store(v.type) @ v)


def _modified(c: Call, name: str, x: Value) -> Value:
    """A tensor after a body has modified it, if the call has that body."""
    body: Body | None = c.attr(name)
    if body is None:
        return x
    fed = [port for port in body.inputs if port.constant is None]
    c.require("one-to-one", len(fed) == len(body.outputs) == 1)
    c.require("modifier-type", fed[0].type == body.outputs[0].type == x.type)
    (result,) = run(c, body, (x,), {})
    c.require("modifier-shape", isinstance(result, Value) and result.shape == x.shape)
    return result  # type: ignore[return-value]  # just looked at


def _shared(q: Value, k: Value, v: Value) -> tuple[Value, Value]:
    """Keys and values for each head of the queries."""
    heads = np.arange(q.shape[1]) // (q.shape[1] // k.shape[1])
    return k.take(heads, 1), v.take(heads, 1)


def _fitting(c: Call, q: Value, k: Value, v: Value) -> None:
    c.require("shapes", k.shape[:3] == v.shape[:3] and q.shape[0] == k.shape[0] and q.shape[3] == k.shape[3])
    c.require("groups", k.shape[1] > 0 and q.shape[1] % k.shape[1] == 0)


def _headed(c: Call, q: Value, k: Value, v: Value) -> tuple[Value, Value, Value]:
    """Queries, keys and values with the heads on the second axis."""
    counts = c.attr("q_num_heads"), c.attr("kv_num_heads"), c.attr("kv_num_heads")
    c.require("ranks", q.rank == k.rank == v.rank and q.rank in (3, 4))
    if q.rank == len(("B", "S", "HD")):
        c.require("heads-given", all(n is not None and n > 0 for n in counts))
        c.require("heads-divide", all(x.shape[2] % n == 0 for x, n in zip((q, k, v), counts, strict=True)))
        q, k, v = (
            x.reshape(*x.shape[:2], n, x.shape[2] // n).transpose(0, 2, 1, 3)
            for x, n in zip((q, k, v), counts, strict=True)
        )
    elif counts != (None, None, None):
        c.open("heads-beside")
    _fitting(c, q, k, v)
    return q, k, v


def _state(c: Call, k: Value, v: Value, past_key: Value | None, past_value: Value | None, lengths: Value | None) -> int:
    """The number of keys of the past."""
    used = [past_key is not None, past_value is not None, c.wants("present_key"), c.wants("present_value")]
    c.require("past-together", used[0] == used[1])
    if lengths is not None:
        c.require("one-cache", not any(used))
        c.require("lengths-range", lengths.shape == k.shape[:1])
        c.require("lengths-range", (lengths >= 0) & (lengths <= k.shape[2]))
    elif any(used) and not all(used):
        c.open("state-partial")
    if past_key is None or past_value is None:
        return 0
    past = past_key.shape[2] if past_key.rank == k.rank else 0
    c.require("past-shape", past_key.shape == (*k.shape[:2], past, k.shape[3]))
    c.require("past-shape", past_value.shape == (*v.shape[:2], past, v.shape[3]))
    return past


def _scores(c: Call, q: Value, k: Value) -> Value:
    """Products of queries and keys, each times the root of the scale, so that their sums do not overflow."""
    given = None if c.attr("scale") is None else np.float32(c.float32("scale"))
    if given is not None and given < 0 and c.open("scale-negative") == "of-product":
        return (q @ k.mT) * c.constant(float(given), q.type)
    with np.errstate(invalid="ignore"):
        scale = np.float32(1) / np.sqrt(np.float32(q.shape[3])) if given is None else given
        narrow = float(np.sqrt(scale))
    way = "in-type"
    if q.type == "float64" and narrow != math.sqrt(abs(q.shape[3] ** -0.5 if given is None else given)):
        way = c.open("float32-scale")
    if way == "root":
        root = c.constant(narrow, q.type)
    elif given is None and way == "in-type":
        wide = "float64" if q.type == "float64" else "float32"
        root = (1.0 / c.constant(float(q.shape[3]), wide).sqrt()).sqrt().store(q.type)
    else:
        root = c.constant(float(scale), "float64" if q.type == "float64" else "float32").sqrt().store(q.type)
    return (q * root) @ (k * root).mT


def _capped(c: Call, scores: Value) -> Value:
    limit = c.float32("softcap")
    if not limit or (limit < 0 and c.open("softcap-negative") == "ignored"):
        return scores
    cap = c.constant(limit, scores.type)
    return (scores / cap).tanh() * cap


def _mask(
    c: Call, mask: Value | None, lengths: Value | None, shape: tuple[int, ...], type_: str
) -> tuple[Value | None, Value | None]:
    """The bias that a mask adds to the scores, and the keys that it excludes; `shape`: [B, H, S, P + L]."""
    if mask is None:
        return None, None
    total, short = shape[3], "mask-short" in c.clauses and mask.rank > 0
    last = mask.shape[-1] if mask.rank else 1
    fits = mask.rank <= len(shape) and all(e in (1, d) for e, d in zip(mask.shape[-2::-1], shape[2::-1], strict=False))
    c.require("mask-shape", fits and (last in (1, total) or (short and last < total)))
    if short and lengths is not None and last < total:
        c.require("mask-covers", lengths <= last)
    if mask.type not in ("bool", type_):
        c.open("mask-type")
    if short and last < total and (last != 1 or c.open("mask-of-one") == "padded"):
        beyond = c.constant(-math.inf if mask.kind == "real" else 0, mask.type)
        mask = mask.concat([beyond.broadcast(*mask.shape[:-1], total - last)], mask.rank - 1)
    mask = mask.to_rank(len(shape))
    if mask.kind == "bool":
        return None, ~mask
    return mask.store(type_) if mask.kind == "real" else mask.cast(type_), None


def _hidden(c: Call, lengths: Value | None, shape: tuple[int, ...], past: int) -> list[Value]:
    """Masks of the keys in the future, outside the window, or beyond the length."""
    queries, keys = np.arange(shape[2]).reshape(-1, 1), np.arange(shape[3])
    behind = (keys - queries)[None, None]
    left, right = c.attr("left_window_size", -1), c.attr("right_window_size", -1)
    c.require_if_stated("windows", left >= -1 and right >= -1)
    causal = c.attr("is_causal") == 1
    if lengths is None:
        off = np.zeros(behind.shape, bool)
        if causal:
            off = off | (behind > past)
        if left >= 0:
            off = off | (behind < past - left)
        if right >= 0:
            off = off | (behind > past + right)
        return [c.constant(off, "bool")] if causal or left >= 0 or right >= 0 else []
    count = lengths.reshape(-1, 1, 1, 1)
    masks = [c.constant(keys.reshape(1, 1, 1, -1), "int64") >= count]
    ahead = behind + shape[2]  # of a query's own position: its index plus `lengths` less the number of queries
    if causal:
        masks.append(c.constant(ahead, "int64") > count)
    if left >= 0:
        masks.append(c.constant(ahead + left, "int64") < count)
    if right >= 0:
        masks.append(c.constant(ahead - right, "int64") > count)
    return masks


def _alone(off: Value | None, bias: Value | None, shape: tuple[int, ...]) -> Value | None:
    """A mask of the queries that attend to no key."""
    ruled = None if bias is None else bias.isinf(positive=False)
    none = off if ruled is None else ruled if off is None else off | ruled
    return None if none is None else none.broadcast(*shape).cast("uint8").min(3).cast("bool")


def _any(mask: Value) -> Value:
    return mask.cast("uint8").max(3).cast("bool")


def _strange(v: Value) -> Value:
    """A mask of the keys with values that are not finite. v: [B, H, L, E]; result: [B, H, 1, L]."""
    return _any(v.isnan() | v.isinf()).mT


def _softmax(c: Call, x: Value) -> Value:
    """Softmax along the keys, in the type softmax_precision, else in x's type.

    Version 25 names the casts to that type and back; before, only the precision of the computation is stated.
    """
    number = c.attr("softmax_precision")
    c.require("precision-known", number is None or number in _PRECISIONS)
    to = x.type if number is None else _PRECISIONS[number]
    own, other = (element_type(type_).float_format.precision for type_ in (x.type, to))
    if other < own and c.open("precision-narrower") == "as-input":
        to = x.type
    if "precision-cast" in c.clauses:
        return along(c, x.cast(to), 3).cast(x.type)
    return along(c, x.store(to), 3).store(x.type)


def _summed(c: Call, p: Value, v: Value) -> Value:
    """Values times weights, in the weights' type."""
    if p.type == v.type:
        return p @ v
    c.open("types-differ")
    wide = "float64" if "float64" in (p.type, v.type) else "float32"
    return (p.cast(wide) @ v.cast(wide)).cast(p.type).either(p @ v.cast(p.type))


def queries(shaping: Shaping) -> tuple[int, ...]:
    """[B, H, S, D], or [B, S, H D] if the numbers of heads are given."""
    return _joined(shaping, "HSD")


def keys(shaping: Shaping) -> tuple[int, ...]:
    """[B, G, L, D], or [B, L, G D] if the numbers of heads are given."""
    return _joined(shaping, "GLD")


def values(shaping: Shaping) -> tuple[int, ...]:
    """[B, G, L, E], or [B, L, G E] if the numbers of heads are given."""
    return _joined(shaping, "GLE")


def _joined(shaping: Shaping, names: str) -> tuple[int, ...]:
    batch, heads, length, size = (shaping.extent(name) for name in "B" + names)
    four = shaping.attr("q_num_heads") in (None, Word.ABSENT)
    return (batch, heads, length, size) if four else (batch, length, heads * size)


def eighths(blank: Blank, draw: Draw) -> Array:
    """Multiples of 1/8 in [-2, 2]: distinct weights with exact sums."""
    return draw.between(-16, 16, blank.size) / 8.0


def mask(drawing: Drawing) -> Array:
    """True or false; small whole numbers; or multiples of 1/8 in [-2, 2], one in four replaced by -inf."""
    coins = drawing.draw.below(4, drawing.size)
    if drawing.type.kind != "float":
        return coins // 2 if drawing.type.kind == "bool" else coins
    return np.where(coins == 0, -np.inf, drawing.draw.between(-16, 16, drawing.size) / 8.0)


def first_off(drawing: Drawing) -> Array:
    """Like `mask`, but the first row excludes all keys."""
    masks = mask(drawing)
    masks[:, : drawing.shape[-1]] = -np.inf if drawing.type.kind == "float" else 0
    return masks


def shifted(drawing: Drawing) -> Array:
    """Numbers far below zero, which exclude no key."""
    return -64.0 - drawing.draw.below(4, drawing.size)


def ragged(drawing: Drawing) -> Array:
    """Numbers of keys: all but one, one, all, none, then any."""
    most = _keys(drawing)
    any_ = drawing.draw.below(most + 1, drawing.size)
    any_[:, :4] = np.array([most - 1, 1, most, 0])[: drawing.size].clip(0)
    return any_


def beyond(drawing: Drawing) -> Array:
    """Like `ragged`, but the first is larger than the number of keys."""
    lengths = ragged(drawing)
    lengths[:, :1] = _keys(drawing) + 1
    return lengths


def _keys(drawing: Drawing) -> int:
    shape = drawing.values["K"].shape[1:]
    return int(shape[2 if len(shape) == len("BGLD") else 1])


def sixties(drawing: Drawing) -> Array:
    """Numbers of 64 or a little more: the sum of their unscaled products overflows float16."""
    return 64.0 + drawing.draw.below(4, drawing.size)


def zero(drawing: Drawing) -> Array:
    """All zeros: queries to which all keys are equal."""
    return np.zeros(drawing.size)


def last_lost(drawing: Drawing) -> Array:
    """Multiples of 1/8 in [-2, 2], and NaN for the last key."""
    return _ending(drawing, np.nan)


def last_infinite(drawing: Drawing) -> Array:
    """Multiples of 1/8 in [-2, 2], and infinity for the last key."""
    return _ending(drawing, np.inf)


def _ending(drawing: Drawing, number: float) -> Array:
    numbers = drawing.draw.between(-16, 16, drawing.size) / 8.0
    numbers[:, -drawing.shape[-1] :] = number
    return numbers
