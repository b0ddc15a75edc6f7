"""Losses of classes: NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss."""

from __future__ import annotations

import math

import numpy as np

from ...cases.elements import Array
from ..arithmetic.tape import Call, Value
from ..fills import Drawing, any_below
from .normalization import logarithm_along


def negative_log_likelihood_loss(c: Call, x: Value, target: Value, weight: Value | None = None) -> Value:
    """The negated elements of x at the target classes, each times its class's weight, reduced.

    x: [N, C, D...]; target: whole numbers [N, D...]; weight: [C]; result: [N, D...], or a scalar.
    Source: ONNX NegativeLogLikelihoodLoss-12 to 22.
    """
    return _loss(c, x, target, weight)


def softmax_cross_entropy_loss(
    c: Call, scores: Value, labels: Value, weights: Value | None = None
) -> tuple[Value, Value]:
    """The negative log likelihood loss of the log of Softmax over the classes of scores, and this logarithm.

    scores: [N, C, D...]; labels: whole numbers [N, D...]; weights: [C]; results: [N, D...], a scalar with reduction sum
    or mean; the shape of scores. Source: ONNX SoftmaxCrossEntropyLoss-12 and 13.
    """
    c.require("shapes", scores.rank >= 2)
    y = logarithm_along(c, scores, 1)
    return _loss(c, y, labels, weights), y


def _loss(c: Call, y: Value, target: Value, weight: Value | None) -> Value:
    c.require("shapes", y.rank >= 2 and target.shape == (y.shape[0], *y.shape[2:]))
    classes, ignore, reduction = y.shape[1], c.attr("ignore_index"), c.attr("reduction")
    c.require("shapes", weight is None or weight.shape == (classes,))
    c.require("reduction", reduction in ("none", "sum", "mean"))
    ignored = None if ignore is None else target.equal(ignore)
    inside = (target >= 0) & (target < classes)
    c.require("class-range", inside if ignored is None else inside | ignored)
    safe = target.where(inside, 0)
    loss = -y.along(safe.reshape(y.shape[0], 1, *y.shape[2:]), 1).reshape(*target.shape)
    factors = None if weight is None else weight.gather(safe, 0)
    loss = loss if factors is None else loss * factors
    zero = c.constant(0.0, y.type)
    if ignored is not None:
        loss = zero.any_zero().where(ignored, loss)
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum(keep=False)
    counts = ignored is None or c.open("mean-of-ignored", ignored) == "all"
    if factors is None and counts:
        if not loss.size:
            return zero if c.open("nothing-applied") == "zero" else c.constant(math.nan, y.type)
        return loss.mean(keep=False)
    applied = c.constant(1.0, y.type).broadcast(*target.shape) if factors is None else factors
    total = applied.where(inside if counts or ignored is None else ~ignored, zero).sum(keep=False)
    mean, none = loss.sum(keep=False) / total, total.equal(0)
    return zero.where(none, mean) if c.open("nothing-applied", none) == "zero" else mean


def ignoring(drawing: Drawing) -> Array:
    """Classes below `below`, every third of them ignored."""
    return np.where(np.arange(drawing.size) % 3 == 1, drawing.attributes["ignore_index"], any_below(drawing))


def all_ignored(drawing: Drawing) -> Array:
    """Only the ignored class."""
    return np.full(drawing.size, drawing.attributes["ignore_index"])


def too_large(drawing: Drawing) -> Array:
    """Classes, the last of which is `below`."""
    return np.where(np.arange(drawing.size) == drawing.size - 1, drawing.limit("below", 1), any_below(drawing))


def below_zero(drawing: Drawing) -> Array:
    """Classes, the last of which is -1."""
    return np.where(np.arange(drawing.size) == drawing.size - 1, -1, any_below(drawing))
