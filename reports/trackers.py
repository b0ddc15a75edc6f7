"""Where the failures of built-in backends can be reported."""

from __future__ import annotations

from collections.abc import Mapping

_TRACKERS: Mapping[str, str] = {
    "onnxruntime": "https://github.com/microsoft/onnxruntime/issues",
    "onnx-reference": "https://github.com/onnx/onnx/issues",
    "onnx-infer": "https://github.com/onnx/onnx/issues",
    "onnx-check": "https://github.com/onnx/onnx/issues",
    "onnx-convert": "https://github.com/onnx/onnx/issues",
    "openvino": "https://github.com/openvinotoolkit/openvino/issues",
    "onednn": "https://github.com/uxlfoundation/oneDNN/issues",
    "tract": "https://github.com/sonos/tract/issues",
    "opencv": "https://github.com/opencv/opencv/issues",
    "emx-onnx-cgen": "https://github.com/emmtrix/emx-onnx-cgen/issues",
    "tinygrad": "https://github.com/tinygrad/tinygrad/issues",
    "tvm": "https://github.com/apache/tvm/issues",
    "mnn": "https://github.com/alibaba/MNN/issues",
}
"""By the beginning of the names of backends: `onnxruntime-noopt` and `onnxruntime==1.20.1` are onnxruntime, too."""


def tracker_of(backend: str) -> str | None:
    """Return the address of the tracker of a backend's library, None if it is not known."""
    near = max((name for name in _TRACKERS if backend.startswith(name)), key=len, default=None)
    return None if near is None else _TRACKERS[near]
