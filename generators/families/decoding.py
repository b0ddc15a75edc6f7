"""Operators of language models besides attention: RotaryEmbedding, CausalConvWithState, LinearAttention."""

from __future__ import annotations

from ...cases.elements import Array, element_type
from ..arithmetic.tape import Call, Value
from ..fills import Drawing


def rotary_embedding(c: Call, x: Value, cos: Value, sin: Value, positions: Value | None = None) -> Value:
    """Pairs of each head's numbers, rotated by angles with given cosines and sines; the others stay unchanged.

    x: [B, H, L, 2 h] or [B, L, H 2 h]; cos, sin: [B, L, d / 2], or [P, d / 2] with positions: int64 [B, L], d being
    rotary_embedding_dim or else 2 h; result: as x. Pairs are neighbours, or one number from each half.
    Source: ONNX RotaryEmbedding-23.
    """
    c.require("rank", x.rank in (3, 4))
    heads, shape = c.attr("num_heads"), x.shape
    if x.rank == 3:
        c.require("heads", heads is not None and heads > 0 and shape[2] % heads == 0)
        x = x.reshape(*shape[:2], heads, shape[2] // heads)
    else:
        x = x.transpose(0, 2, 1, 3)
    c.require("even", x.shape[3] % 2 == 0)
    size = c.attr("rotary_embedding_dim") or x.shape[3]
    first = (sin.shape[0],) if positions is not None else x.shape[:2]
    c.require("caches", cos.shape == sin.shape == (*first, size // 2))
    if positions is not None:
        c.require("positions", positions.shape == x.shape[:2])
        c.require("range", (positions >= 0) & (positions < cos.shape[0]))
        cos, sin = cos.gather(positions, 0), sin.gather(positions, 0)
    cos, sin = (v.reshape(*v.shape[:2], 1, size // 2) for v in (cos, sin))
    turned, rest = x[..., :size], x[..., size:]
    paired = (size // 2, 2) if c.attr("interleaved") else (2, size // 2)
    pairs = turned.reshape(*x.shape[:3], *paired)
    left, right = (pairs[..., i] if c.attr("interleaved") else pairs[..., i, :] for i in (0, 1))
    real, imaginary = cos * left - sin * right, sin * left + cos * right
    if c.attr("interleaved"):
        y = real.reshape(*real.shape, 1).concat([imaginary.reshape(*real.shape, 1)], 4).reshape(*turned.shape)
    else:
        y = real.concat([imaginary], 3)
    y = y.concat([rest], 3)
    return y.reshape(*shape) if len(shape) == 3 else y.transpose(0, 2, 1, 3)


def causal_conv_with_state(
    c: Call, x: Value, w: Value, b: Value | None = None, past: Value | None = None
) -> tuple[Value, Value]:
    """Each channel convolved with its own filter, over elements up to the current one; and the last ones, as the state.

    x: [B, C, L]; w: [C, 1, K]; b: [C]; past: [B, C, K - 1], zeros if missing; results: [B, C, L] and [B, C, K - 1].
    Source: ONNX CausalConvWithState-27.
    """
    way = c.attr("activation")
    c.require("activation", way in ("none", "silu", "swish"))
    c.require("rank", x.rank == w.rank == 3)
    batch, channels, length = x.shape
    k = w.shape[2]
    c.require("weight", w.shape[:2] == (channels, 1) and k > 0)
    c.require("bias", b is None or b.shape == (channels,))
    c.require("state", past is None or past.shape == (batch, channels, k - 1))
    before = c.constant(0.0, x.type).broadcast(batch, channels, k - 1) if past is None else past
    joined = before.concat([x], 2)
    if not length:
        return x, joined
    seen, weights = joined.windows((k,), (1,), (1,)), w.reshape(1, channels, k, 1)
    if b is not None:  # one more addend, in any order
        seen = seen.concat([c.constant(1.0, x.type).broadcast(batch, channels, length, 1)], 3)
        weights = weights.concat([b.reshape(1, channels, 1, 1)], 2)
    y = seen.matmul(weights).reshape(*x.shape)
    return y if way == "none" else y * y.sigmoid(), joined[..., length:]


def linear_attention(
    c: Call,
    query: Value,
    key: Value,
    value: Value,
    past: Value | None = None,
    decay: Value | None = None,
    beta: Value | None = None,
) -> tuple[Value, Value]:
    """The values that queries read from a state, to which every token adds its value under its key.

    query: [B, L, Hq dk]; key: [B, L, H dk]; value: [B, L, H dv]; past: [B, H, dk, dv], zeros if missing; decay:
    [B, L, H dk] or [B, L, H]; beta: [B, L, H] or [B, L, 1]; results: [B, L, Hq dv] and [B, H, dk, dv]. A head of the
    state serves Hq / H consecutive queries. Source: ONNX LinearAttention-27.
    """
    rule, queries, heads = c.attr("update_rule"), c.attr("q_num_heads"), c.attr("kv_num_heads")
    c.require("rule", rule in ("linear", "gated", "delta", "gated_delta"))
    c.require("heads", heads > 0 and queries > 0 and queries % heads == 0)
    c.require("shapes", query.rank == key.rank == value.rank == 3 and query.shape[2] % queries == 0)
    batch, length = query.shape[:2]
    dk, dv = query.shape[2] // queries, value.shape[2] // heads
    c.require("shapes", key.shape == (batch, length, heads * dk) and value.shape == (batch, length, heads * dv))
    c.require("state", past is None or past.shape == (batch, heads, dk, dv))
    gated, corrected = rule.startswith("gated"), rule.endswith("delta")
    c.require("decay", not gated or decay is not None)
    c.require("beta", not corrected or beta is not None)
    if (decay is not None and not gated) or (beta is not None and not corrected):
        c.open("not-needed")
    start = (batch, length)
    c.require("gates", decay is None or decay.shape in ((*start, heads * dk), (*start, heads)))
    c.require("gates", beta is None or beta.shape in ((*start, heads), (*start, 1)))
    stored = str(c.output_types["present_state"] or query.type)
    coarser = element_type(stored).float_format.precision < element_type(query.type).float_format.precision
    s = c.constant(0.0, query.type).broadcast(batch, heads, dk, dv) if past is None else past.cast(query.type)
    scale = c.float32("scale")
    root = c.constant(dk, query.type).sqrt()
    outputs = [c.constant(0.0, query.type).broadcast(batch, 0, queries * dv)]
    for t in range(length):
        k, v = key[:, t].reshape(batch, heads, dk, 1), value[:, t].reshape(batch, heads, 1, dv)
        if gated and decay is not None:
            s = s * decay[:, t].reshape(batch, heads, decay.shape[2] // heads, 1).exp()
        if corrected and beta is not None:
            v = (v - k.transpose(0, 1, 3, 2).matmul(s)) * beta[:, t].reshape(batch, beta.shape[2], 1, 1)
        s = s + k * v
        if coarser:  # the state may be kept in its own type
            s = s.either(s.cast(stored).cast(query.type))
        q = query[:, t].reshape(batch, heads, queries // heads, dk)
        o = q.matmul(s).reshape(batch, 1, queries * dv)
        outputs.append(o * scale if scale else (o / root).either(o * (1.0 / root)))
    return outputs[0].concat(outputs[1:], 1), s


def rows(drawing: Drawing) -> Array:
    """Uniform indices of rows of the caches."""
    return drawing.draw.below(max(1, drawing.values["cos_cache"].shape[1]), drawing.size)
