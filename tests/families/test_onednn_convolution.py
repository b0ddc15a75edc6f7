"""oneDNN Graph's transposed convolutions and gradients of convolutions: differences of the forward operations.

Convolutions are linear in each operand, so that the difference of two results is a derivative without an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded import readings, values

F = np.float32
DRAW = np.random.default_rng(11)
PLACES = 6

SETTINGS: list[dict[str, Any]] = [
    {"strides": (1, 1), "dilations": (1, 1), "pads_begin": (0, 0), "pads_end": (0, 0)},
    {"strides": (2, 3), "dilations": (1, 2), "pads_begin": (1, 0), "pads_end": (2, 1), "groups": 2},
    {"strides": (3, 1), "dilations": (2, 1), "pads_begin": (0, 2), "pads_end": (1, 0), "data_format": "NCX"},
]


def drawn(*shape: int) -> Any:
    return DRAW.integers(-8, 8, shape).astype(F)


def differences(forward: Any, operands: dict[str, Any], name: str, seed: Any, places: Any) -> list[float]:
    """The derivatives of the sum of the result times `seed`, at some places of an operand."""
    start, found = forward(operands), []
    for place in places:
        moved = operands | {name: operands[name].copy()}
        moved[name].reshape(-1)[place] += 1
        found.append(float(((forward(moved) - start) * seed).sum()))
    return found


def turned(x: Any, settings: dict[str, Any]) -> Any:
    return x if settings.get("data_format") == "NCX" else np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("weights_format", ["XIO", "OIX"])
def test_the_gradients_of_a_convolution_are_its_differences(settings: dict[str, Any], weights_format: str) -> None:
    groups = settings.get("groups", 1)
    src, weights = turned(drawn(2, 4, 9, 8), settings), drawn(6, 4 // groups, 3, 2)
    if weights_format == "XIO":
        weights = np.ascontiguousarray(weights.transpose(2, 3, 1, 0))
    told = settings | {"weights_format": weights_format}

    def forward(given: dict[str, Any]) -> Any:
        return values("onednn/Convolution", given, {"dst": "float32"}, **told)[0]

    operands = {"src": src, "weights": weights}
    seed = drawn(*forward(operands).shape)
    given = {"diff_dst": seed, "weights": weights}
    (of_src,) = values("onednn/ConvolutionBackwardData", given, {"diff_src": "float32"}, dst_shape=src.shape, **told)
    given = {"src": src, "diff_dst": seed}
    (of_weights,) = values(
        "onednn/ConvolutionBackwardWeights", given, {"diff_weights": "float32"}, weights_shape=weights.shape, **told
    )
    for name, found in (("src", of_src), ("weights", of_weights)):
        assert found.shape == operands[name].shape
        places = DRAW.integers(0, found.size, PLACES)
        assert found.reshape(-1)[places].tolist() == differences(forward, operands, name, seed, places)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("weights_format", ["XOI", "IOX"])
@pytest.mark.parametrize("more", [None, (1, 0)])
def test_the_gradients_of_a_transposed_convolution_are_its_differences(
    settings: dict[str, Any], weights_format: str, more: Any
) -> None:
    if more and settings["strides"][0] == 1:
        more = (0, 0)
    groups = settings.get("groups", 1)
    src, weights = turned(drawn(2, 4, 5, 4), settings), drawn(4, 6 // groups, 3, 2)
    if weights_format == "XOI":
        weights = np.ascontiguousarray(weights.transpose(2, 3, 1, 0))
    told = settings | {"weights_format": weights_format} | ({"output_padding": more} if more else {})
    taken = {"grouped-weights": "as-convolution-s"} if groups > 1 else {}

    def computed(operation: str, given: dict[str, Any], output: str, **own: Any) -> Any:
        found = readings(f"onednn/{operation}", given, {output: "float32"}, **told, **own)
        assert not isinstance(found, str), found
        (one,) = (reading for reading in found if taken.items() <= dict(reading.taken).items())
        return one.values[0]

    def forward(given: dict[str, Any]) -> Any:
        return computed("ConvTranspose", given, "dst")

    operands = {"src": src, "weights": weights}
    seed = drawn(*forward(operands).shape)
    of_src = computed("ConvTransposeBackwardData", {"diff_dst": seed, "weights": weights}, "diff_src")
    of_weights = computed(
        "ConvTransposeBackwardWeights", {"src": src, "diff_dst": seed}, "diff_weights", weights_shape=weights.shape
    )
    for name, found in (("src", of_src), ("weights", of_weights)):
        assert found.shape == operands[name].shape
        places = DRAW.integers(0, found.size, PLACES)
        assert found.reshape(-1)[places].tolist() == differences(forward, operands, name, seed, places)


@pytest.mark.parametrize("weights_format", ["XOI", "IOX"])
def test_the_note_s_weights_of_groups_are_the_same_numbers_in_another_order(weights_format: str) -> None:
    src, weights = drawn(1, 5, 4, 4), drawn(4, 3, 3, 2)  # four input channels, three output channels for each group
    noted = weights.reshape(2, 2, 3, 3, 2).transpose(1, 0, 2, 3, 4).reshape(2, 6, 3, 2)
    told = SETTINGS[0] | {"groups": 2, "weights_format": weights_format}

    def answers(w: Any) -> list[Any]:
        w = np.ascontiguousarray(w if weights_format == "IOX" else w.transpose(2, 3, 1, 0))
        found = readings("onednn/ConvTranspose", {"src": src, "weights": w}, {"dst": "float32"}, **told)
        assert not isinstance(found, str)
        return [reading.values[0] for reading in found if reading.values]

    (one,), (other,) = answers(weights), answers(noted)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("word", "before"), [("same_upper", 1), ("SAME_LOWER", 0)])
def test_an_odd_padding_of_a_gradient_is_split_as_its_page_says(word: str, before: int) -> None:
    weights, seed = drawn(3, 2, 2, 3), drawn(1, 3, 3)[..., None].repeat(3, -1)
    given = {"diff_dst": seed, "weights": weights}
    attributes = SETTINGS[0] | {"strides": (2, 2), "dst_shape": (1, 6, 6, 2)}
    (found,) = values("onednn/ConvolutionBackwardData", given, {"diff_src": "float32"}, auto_pad=word, **attributes)
    pads = {"pads_begin": (before, 0), "pads_end": (1 - before, 0)}
    (want,) = values("onednn/ConvolutionBackwardData", given, {"diff_src": "float32"}, **attributes | pads)
    np.testing.assert_array_equal(found, want)


def test_the_same_extents_may_be_any_that_a_convolution_takes_to_those_of_src() -> None:
    src, weights = drawn(1, 4, 5, 2), drawn(3, 3, 3, 2)
    told = SETTINGS[0] | {"strides": (2, 1), "weights_format": "XOI", "auto_pad": "SAME_UPPER"}
    found = readings("onednn/ConvTranspose", {"src": src, "weights": weights}, {"dst": "float32"}, **told)
    assert not isinstance(found, str)
    extents = {reading.taken["same-extents"]: reading.values[0].shape for reading in found}
    assert extents == {"largest": (1, 8, 5, 3), "smallest": (1, 7, 5, 3)}


def test_pads_have_no_effect_on_a_gradient_beside_auto_pad() -> None:
    given = {"diff_dst": drawn(1, 4, 3, 3), "weights": drawn(3, 3, 2, 3)}
    attributes = SETTINGS[0] | {"dst_shape": (1, 6, 5, 2)}
    pads = {"auto_pad": "VALID", "pads_begin": (1, 1), "pads_end": (1, 1)}
    (found,) = values("onednn/ConvolutionBackwardData", given, {"diff_src": "float32"}, **attributes | pads)
    (want,) = values("onednn/ConvolutionBackwardData", given, {"diff_src": "float32"}, **attributes)
    np.testing.assert_array_equal(found, want)
