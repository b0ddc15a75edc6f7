"""The numbers behind oneDNN Graph's names: operations, attributes and data types of its C header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_IN_ORDER = """
Abs AbsBackward Add AvgPool AvgPoolBackward BatchNormTrainingBackward BatchNormForwardTraining BatchNormInference
BiasAdd BiasAddBackward Clamp ClampBackward Concat Convolution ConvolutionBackwardData ConvolutionBackwardWeights
ConvTranspose ConvTransposeBackwardData ConvTransposeBackwardWeights Dequantize Divide DynamicDequantize DynamicQuantize
Elu EluBackward End Exp GELU GELUBackward HardSwish HardSwishBackward Interpolate InterpolateBackward LayerNorm
LayerNormBackward LeakyReLU Log LogSoftmax LogSoftmaxBackward MatMul Maximum MaxPool MaxPoolBackward Minimum Mish
MishBackward Multiply PReLU PReLUBackward Quantize Reciprocal ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin
ReduceProd ReduceSum ReLU ReLUBackward Reorder Round Sigmoid SigmoidBackward SoftMax SoftMaxBackward SoftPlus
SoftPlusBackward Sqrt SqrtBackward Square SquaredDifference StaticReshape StaticTranspose Subtract Tanh TanhBackward
TypeCast Wildcard HardSigmoid HardSigmoidBackward Select Pow GroupNorm GenIndex GreaterEqual RMSNorm Dropout
"""

OPERATIONS: Final[Mapping[str, int]] = {name: number for number, name in enumerate(_IN_ORDER.split())}
"""The kinds of operations by the names of their pages; up to Select in oneDNN 3.2, to Pow in 3.3, all in 3.13.

Kinds are only ever added at the end, and a library accepts a number that it does not know.
"""


def _numbered(first: int, names: str) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


ATTRIBUTES: Final[Mapping[str, int]] = {
    # The library tells by the number what a value is: a float, floats, an integer, integers, a truth value, a string.
    **_numbered(0x01, "alpha beta epsilon max min momentum"),
    **_numbered(0x20, "scales"),
    **_numbered(0x30, "axis begin_norm_axis groups"),
    **_numbered(
        0x40,
        "axes dilations dst_shape kernel order output_padding pads_begin pads_end shape sizes src_shape strides"
        " weights_shape zps group_shape",
    ),
    **_numbered(
        0x60,
        "exclude_pad keep_dims keep_stats per_channel_broadcast special_zero transpose_a transpose_b use_affine"
        " use_dst",
    ),
    **_numbered(
        0x80,
        "auto_broadcast auto_pad coordinate_transformation_mode data_format mode qtype rounding_type weights_format"
        " accumulation_mode",
    ),
}
"""The attributes of operations."""

TYPES: Final[Mapping[str, str]] = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "int8": "s8",
    "uint8": "u8",
    "int16": "s16",
    "uint16": "u16",
    "int32": "s32",
    "int64": "s64",
    "bool": "boolean",
    "float8e5m2": "f8_e5m2",
    "float8e4m3fn": "f8_e4m3",
    "int4": "s4",
    "uint4": "u4",
    "float8e8m0": "e8m0",
    "float4e2m1": "f4_e2m1",
}
"""What oneDNN calls our element types; uint32 and uint64 it has never had."""

TYPE_NUMBERS: Final[Mapping[str, int]] = {
    "f16": 1,
    "bf16": 2,
    "f32": 3,
    "s32": 4,
    "s8": 5,
    "u8": 6,
    "f64": 7,
    "boolean": 8,
    "f8_e5m2": 9,
    "f8_e4m3": 10,
    "s4": 11,
    "u4": 12,
    "e8m0": 13,
    "f4_e2m1": 14,
    "s64": 16,
    "s16": 16,
    "u16": 17,
}
"""Data types by oneDNN's names. Headers disagree about 16, so a number counts only if the library calls it so."""
