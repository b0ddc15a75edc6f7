"""NumPy, PyTorch, JAX and TensorFlow by their own functions: independent implementations to test the suite with.

From this folder, with the library installed:

    opconform run python:third_parties:Numpy
    opconform run python:third_parties:Torch         pip install torch
    opconform run python:third_parties:TorchCuda     and an NVIDIA device; TorchCudaTf32 has its products in TF32
    opconform run python:third_parties:Jax           pip install jax
    opconform run python:third_parties:TensorFlow    pip install tensorflow

A row of `TABLE` names the function of each library for one operator. The row's form, a function of this module, adds
what the operator defines and the function lacks: axes as an attribute or an input, older rules of broadcasting, the
sides of a padding. The libraries don't know versions, so this module refuses what an operator's schema excludes.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import onnx.defs
import onnx.helper

from opconform.cases.elements import Array, element_type
from opconform.cases.program import Program
from opconform.cases.runner import NotInstalled, Reason, Unsupported
from opconform.runners.backends.cuda import NoDevice, device_facts, first_device

# operator         form         numpy               torch               jax                   tensorflow
TABLE = """
Abs                elementwise  abs                 abs                 abs                   abs
Acos               elementwise  arccos              acos                arccos                acos
Acosh              elementwise  arccosh             acosh               arccosh               acosh
Add                elementwise  add                 add                 add                   add
And                elementwise  logical_and         logical_and         logical_and           logical_and
ArgMax             placed       argmax              argmax              argmax                argmax
ArgMin             placed       argmin              argmin              argmin                argmin
Asin               elementwise  arcsin              asin                arcsin                asin
Asinh              elementwise  arcsinh             asinh               arcsinh               asinh
Atan               elementwise  arctan              atan                arctan                atan
Atanh              elementwise  arctanh             atanh               arctanh               atanh
BatchNormalization normalized   -                   batch_norm          -                     batch_normalization
BitShift           shifted      left_shift          bitwise_left_shift  left_shift            left_shift
BitwiseAnd         elementwise  bitwise_and         bitwise_and         bitwise_and           bitwise_and
BitwiseNot         elementwise  bitwise_not         bitwise_not         bitwise_not           invert
BitwiseOr          elementwise  bitwise_or          bitwise_or          bitwise_or            bitwise_or
BitwiseXor         elementwise  bitwise_xor         bitwise_xor         bitwise_xor           bitwise_xor
Cast               cast         astype              Tensor.to           astype                cast
Ceil               elementwise  ceil                ceil                ceil                  ceil
Celu               bent         -                   celu                celu                  -
Clip               clipped      clip                clamp               clip                  clip_by_value
Conv               convolved    -                   conv2d              conv_general_dilated  convolution
Cos                elementwise  cos                 cos                 cos                   cos
Cosh               elementwise  cosh                cosh                cosh                  cosh
CumProd            scanned      cumprod             cumprod             cumprod               cumprod
CumSum             scanned      cumsum              cumsum              cumsum                cumsum
Div                quotient     divide              divide              divide                divide
Einsum             einsum       einsum              einsum              einsum                einsum
Elu                bent         -                   elu                 elu                   -
Equal              elementwise  equal               eq                  equal                 equal
Erf                elementwise  -                   erf                 erf                   erf
Exp                elementwise  exp                 exp                 exp                   exp
Floor              elementwise  floor               floor               floor                 floor
Gather             gathered     take                index_select        take                  gather
Gelu               gelu         -                   gelu                gelu                  gelu
Greater            elementwise  greater             gt                  greater               greater
GreaterOrEqual     elementwise  greater_equal       ge                  greater_equal         greater_equal
HardSwish          elementwise  -                   hardswish           hard_swish            -
Identity           elementwise  copy                clone               copy                  identity
IsInf              infinite     isinf               isinf               isinf                 is_inf
IsNaN              elementwise  isnan               isnan               isnan                 is_nan
LeakyRelu          bent         -                   leaky_relu          leaky_relu            leaky_relu
Less               elementwise  less                lt                  less                  less
LessOrEqual        elementwise  less_equal          le                  less_equal            less_equal
Log                elementwise  log                 log                 log                   log
LogSoftmax         softmax      -                   log_softmax         log_softmax           log_softmax
MatMul             elementwise  matmul              matmul              matmul                matmul
Max                folded       maximum             maximum             maximum               maximum
Mean               stacked      mean                mean                mean                  reduce_mean
Min                folded       minimum             minimum             minimum               minimum
Mish               elementwise  -                   mish                mish                  -
Mod                remainder    mod                 remainder           mod                   floormod
Mul                elementwise  multiply            multiply            multiply              multiply
Neg                elementwise  negative            negative            negative              negative
NonZero            places       nonzero             nonzero             nonzero               where
Not                elementwise  logical_not         logical_not         logical_not           logical_not
Or                 elementwise  logical_or          logical_or          logical_or            logical_or
Pad                padded       pad                 -                   pad                   pad
Pow                elementwise  power               pow                 power                 pow
Reciprocal         elementwise  reciprocal          reciprocal          reciprocal            reciprocal
ReduceL1           norm_1       linalg.vector_norm  linalg.vector_norm  linalg.vector_norm    -
ReduceL2           norm_2       linalg.vector_norm  linalg.vector_norm  linalg.vector_norm    reduce_euclidean_norm
ReduceLogSumExp    formula      -                   logsumexp           logsumexp             reduce_logsumexp
ReduceMax          reduction    amax                amax                amax                  reduce_max
ReduceMean         reduction    mean                mean                mean                  reduce_mean
ReduceMin          reduction    amin                amin                amin                  reduce_min
ReduceProd         total        prod                prod                prod                  reduce_prod
ReduceSum          total        sum                 sum                 sum                   reduce_sum
Relu               elementwise  -                   relu                relu                  relu
Round              elementwise  round               round               round                 round
Selu               usual        -                   selu                selu                  selu
Sigmoid            elementwise  -                   sigmoid             sigmoid               sigmoid
Sign               elementwise  sign                sign                sign                  sign
Sin                elementwise  sin                 sin                 sin                   sin
Sinh               elementwise  sinh                sinh                sinh                  sinh
Softmax            softmax      -                   softmax             softmax               softmax
Softplus           elementwise  -                   softplus            softplus              softplus
Softsign           elementwise  -                   softsign            soft_sign             softsign
Sqrt               elementwise  sqrt                sqrt                sqrt                  sqrt
Sub                elementwise  subtract            subtract            subtract              subtract
Sum                folded       add                 add                 add                   add
Swish              usual        -                   silu                silu                  silu
Tan                elementwise  tan                 tan                 tan                   tan
Tanh               elementwise  tanh                tanh                tanh                  tanh
ThresholdedRelu    thresholded  -                   threshold           -                     -
TopK               largest      -                   topk                top_k                 top_k
Transpose          transposed   transpose           permute             transpose             transpose
Where              elementwise  where               where               where                 where
Xor                elementwise  logical_xor         logical_xor         logical_xor           logical_xor
"""
ROWS = {row[0]: row[1:] for row in map(str.split, TABLE.strip().splitlines())}
WHOLE = {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
TYPES = WHOLE | {"float16", "bfloat16", "float32", "float64", "bool", "complex64", "complex128"}
WORDS: tuple[tuple[str, Reason], ...] = (
    (r"not implemented for|could not infer output dtype|Expected .*dtype|not supported for the input types", "type"),
    (r"does not accept dtype|requires .*dtype|not in the list of allowed values|invalid data type for", "type"),
    (r"Could not find device for node|No OpKernel was registered|must be a floating point|Unsupported dtype", "type"),
    (r"only supports? floating|expected scalar type|Expected a floating point|mixed dtype|Promotion for", "type"),
    (r"which has no identity|Calling nonzero on 0d arrays|to have non-zero size", "shape"),
    (r"was expected to be a \w+ tensor but is", "type"),
    (r"dims must be <= \d|inputs rank not in", "rank"),
    (r"Unhandled input dimensions", "shape"),
    (r"must have the same depth|not supported in conjunction", "attribute"),
)
"""The messages by which the libraries say that a function only supports other types or shapes."""


class Library:
    """A library's tensors, and how to call its functions."""

    name: ClassVar[str]
    column: ClassVar[int]
    standards = ("onnx",)
    axis, keep = "axis", "keepdims"
    modules: tuple[ModuleType, ...] = ()

    def version(self) -> str:
        """Return the library's version."""
        return str(self.modules[-1].__version__)

    def prepare(self, program: Program) -> Prepared:
        """Look up the operator's function. Raises Unsupported, TypeError or ValueError for an invalid program."""
        form, *names = ROWS.get(program.operator.name, ("", "-", "-", "-", "-"))
        name = names[self.column]
        if program.operator.domain or name == "-":
            raise Unsupported(f"no function of {self.name} is {program.operator}", "operator-version")
        types = {one.type for one in (*program.inputs, *program.outputs) if one is not None}
        if not types <= TYPES:
            raise Unsupported(f"{self.name} has no {', '.join(sorted(types - TYPES))}", "type")
        check(program)
        return Prepared(self, program, FORMS[form], self.function(name))

    def function(self, path: str) -> Callable[..., Any]:
        """Return the function of this name, from the first module that has it."""
        for module in self.modules:
            found: Any = module
            for part in path.split("."):
                found = getattr(found, part, None)
            if found is not None:
                return found
        raise Unsupported(f"{self.name} {self.version()} has no {path}", "operator-version")

    def reason(self, error: BaseException) -> Reason:
        """Return why the library refused, as far as its message shows."""
        return next((reason for words, reason in WORDS if re.search(words, str(error))), "other")

    def give(self, x: Array) -> Any:
        """Return an array as the library's tensor."""
        raise NotImplementedError

    def take(self, y: Any) -> Array:
        """Return the library's tensor as an array."""
        raise NotImplementedError

    def reduced(self, f: Callable[..., Any], x: Any, axes: Any, keep: bool, **more: Any) -> Any:
        """Return a reduction along axes; without axes each element is reduced alone."""
        return f(x, **{self.axis: axes, self.keep: keep}, **more)

    def same_type(self, x: Any) -> dict[str, Any]:
        """Return arguments that make sums and products keep their operand's type."""
        return {"dtype": x.dtype}

    def divided(self, x: Any, y: Any) -> Any:
        """Return whole numbers divided, rounded towards zero."""
        raise Unsupported(f"{self.name} has no division of whole numbers that truncates", "type")

    def clipped(self, f: Callable[..., Any], x: Any, low: Any, high: Any) -> Any:
        """Return numbers within limits, None for no limit."""
        return f(x, low, high)

    def taken(self, f: Callable[..., Any], x: Any, places: Any, axis: int) -> Any:
        """Return slices along an axis; negative indices count from its end."""
        return f(x, places, axis=axis)

    def largest(self, f: Callable[..., Any], x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
        """Return the largest (smallest) numbers along an axis and their indices, sorted."""
        raise NotImplementedError

    def convolved(self, f: Callable[..., Any], x: Any, w: Any, pads: list[tuple[int, int]], c: Call) -> Any:
        """Return a convolution without its bias."""
        raise NotImplementedError

    def normalized(self, f: Callable[..., Any], x: Any, scale: Any, b: Any, mean: Any, var: Any, c: Call) -> Any:
        """Return a batch normalized with given means and variances."""
        raise NotImplementedError

    def placed(self, f: Callable[..., Any], x: Any, axis: int, keep: bool) -> Any:
        """Return the index of the largest or smallest along an axis, as int64."""
        return self.integers(self.reduced(f, x, axis, keep))

    def integers(self, x: Any) -> Any:
        """Return indices as int64."""
        return x.astype("int64")

    def scanned(self, f: Callable[..., Any], x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
        """Return a running sum or product."""
        if exclusive or reverse:
            raise Unsupported(f"{f.__name__} is neither exclusive nor reverse", "attribute")
        return f(x, axis, **self.same_type(x))

    def norm(self, f: Callable[..., Any], x: Any, order: int, axes: tuple[int, ...], keep: bool) -> Any:
        """Return a vector norm along axes."""
        return self.reduced(f, x, axes, keep, ord=order)

    def padded(self, f: Callable[..., Any], x: Any, pads: list[tuple[int, int]], mode: str, value: Any) -> Any:
        """Return a tensor with sides."""
        return f(x, pads, mode=mode, **({"constant_values": value} if mode == "constant" else {}))


class Numpy(Library):
    """NumPy."""

    name, column = "numpy", 0
    modules = (np,)

    def give(self, x: Array) -> Any:
        return x

    def take(self, y: Any) -> Array:
        return np.asarray(y)


class Jax(Library):
    """JAX on the CPU, function by function, with types of 64 bits."""

    name, column = "jax", 2

    def __init__(self) -> None:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        try:
            import jax  # noqa: PLC0415 - only who runs it pays for it
            import jax.numpy  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise NotInstalled("jax is not installed: pip install jax") from error
        jax.config.update("jax_enable_x64", True)
        self.modules = (jax.numpy, jax.nn, jax.lax, jax)

    def give(self, x: Array) -> Any:
        return self.modules[0].asarray(x)

    def take(self, y: Any) -> Array:
        return np.asarray(y)

    def divided(self, x: Any, y: Any) -> Any:
        return self.modules[2].div(*self.modules[0].broadcast_arrays(x, y))

    def largest(self, f: Callable[..., Any], x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
        if not largest:
            raise Unsupported("jax.lax.top_k gives the largest alone", "attribute")
        swapped = self.modules[0].moveaxis
        values, places = f(swapped(x, axis, -1), k)
        return swapped(values, -1, axis), swapped(places, -1, axis).astype("int64")

    def convolved(self, f: Callable[..., Any], x: Any, w: Any, pads: list[tuple[int, int]], c: Call) -> Any:
        n = len(pads)
        strides, dilations = c.sizes("strides", n), c.sizes("dilations", n)
        return f(x, w, strides, pads, rhs_dilation=dilations, feature_group_count=c["group"])


class Torch(Library):
    """PyTorch on one thread."""

    name, column = "torch", 1
    axis, keep = "dim", "keepdim"

    def __init__(self) -> None:
        try:
            import torch  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise NotInstalled("torch is not installed: pip install torch") from error
        torch.set_num_threads(1)
        self.torch: Any = torch
        self.modules = (torch.nn.functional, torch)

    def give(self, x: Array) -> Any:
        if x.dtype.name == "bfloat16":
            return self.torch.from_numpy(x.view(np.int16).copy()).view(self.torch.bfloat16)
        return self.torch.from_numpy(x.copy())

    def take(self, y: Any) -> Array:
        if y.dtype == self.torch.bfloat16:
            return y.contiguous().view(self.torch.int16).numpy().view(element_type("bfloat16").dtype)
        if isinstance(y, np.ndarray):
            return y
        return y.resolve_conj().resolve_neg().numpy()

    def integers(self, x: Any) -> Any:
        return x.to(self.torch.int64)

    def reduced(self, f: Callable[..., Any], x: Any, axes: Any, keep: bool, **more: Any) -> Any:
        if axes == () and x.ndim:
            raise Unsupported("no axes are all axes to PyTorch", "attribute")
        if f is not self.torch.prod:
            return super().reduced(f, x, axes, keep, **more)
        for axis in axes:  # along one at a time
            x = f(x, dim=axis, keepdim=True, **more)
        return x if keep else x.squeeze(axes)

    def divided(self, x: Any, y: Any) -> Any:
        return self.torch.div(x, y, rounding_mode="trunc")

    def clipped(self, f: Callable[..., Any], x: Any, low: Any, high: Any) -> Any:
        if low is None and high is None:
            raise Unsupported("At least one of 'min' or 'max' must not be None", "attribute")
        return f(x, low, high)

    def taken(self, f: Callable[..., Any], x: Any, places: Any, axis: int) -> Any:
        axis %= x.ndim
        flat = places.flatten()
        found = f(x, axis, self.torch.where(flat < 0, flat + x.shape[axis], flat))
        return found.reshape((*x.shape[:axis], *places.shape, *x.shape[axis + 1 :]))

    def largest(self, f: Callable[..., Any], x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
        return tuple(f(x, k, dim=axis, largest=largest, sorted=True))

    def convolved(self, f: Callable[..., Any], x: Any, w: Any, pads: list[tuple[int, int]], c: Call) -> Any:
        n = len(pads)
        if n not in (1, 2, 3):
            raise Unsupported(f"PyTorch has no convolution over {n} axes", "rank")
        f, sides = self.function(f"conv{n}d"), [side for pair in reversed(pads) for side in pair]
        even = all(a == b for a, b in pads)
        x = x if even else self.function("pad")(x, sides)
        padding = [a for a, _ in pads] if even else 0
        return f(x, w, None, c.sizes("strides", n), padding, c.sizes("dilations", n), c["group"])

    def normalized(self, f: Callable[..., Any], x: Any, scale: Any, b: Any, mean: Any, var: Any, c: Call) -> Any:
        return f(x, mean, var, scale, b, training=False, eps=c["epsilon"])


class TorchCuda(Torch):
    """PyTorch on the first CUDA device, computing float32 in float32; without a device everything is unsupported."""

    name, device, tf32 = "torch-cuda", "cuda", False

    def __init__(self) -> None:
        super().__init__()
        self.torch.set_float32_matmul_precision("high" if self.tf32 else "highest")
        self.torch.backends.cudnn.allow_tf32 = self.tf32
        try:
            self.found: Any = first_device()
            if not self.torch.cuda.is_available():
                raise NoDevice(f"PyTorch {self.version()} can't use the device: it is built for another CUDA or none")
        except NoDevice as missing:
            self.found = missing

    def describe(self) -> dict[str, str]:
        """Return device, driver and precision, and the CUDA version that PyTorch is built for."""
        return {**device_facts(self.found, self.tf32), "cuda": str(self.torch.version.cuda)}

    def prepare(self, program: Program) -> Prepared:
        if isinstance(self.found, NoDevice):
            raise Unsupported(str(self.found))
        return super().prepare(program)

    def give(self, x: Array) -> Any:
        return super().give(x).to(self.device)

    def take(self, y: Any) -> Array:
        return super().take(y if isinstance(y, np.ndarray) else y.cpu())


class TorchCudaTf32(TorchCuda):
    """PyTorch on the first CUDA device, multiplying float32 in TF32."""

    name, tf32 = "torch-cuda-tf32", True


class TensorFlow(Library):
    """TensorFlow, function by function, on one thread."""

    name, column = "tensorflow", 3

    def __init__(self) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        try:
            import tensorflow as tf  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise NotInstalled("tensorflow is not installed: pip install tensorflow") from error
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        self.tf: Any = tf
        self.modules = (tf.math, tf.nn, tf.bitwise, tf)

    def give(self, x: Array) -> Any:
        return self.tf.constant(x)

    def take(self, y: Any) -> Array:
        return y if isinstance(y, np.ndarray) else np.asarray(y.numpy())

    def same_type(self, x: Any) -> dict[str, Any]:
        return {}

    def placed(self, f: Callable[..., Any], x: Any, axis: int, keep: bool) -> Any:
        found = f(x, axis, output_type=self.tf.int64)
        return self.tf.expand_dims(found, axis) if keep else found

    def scanned(self, f: Callable[..., Any], x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
        return f(x, axis, exclusive=exclusive, reverse=reverse)

    def divided(self, x: Any, y: Any) -> Any:
        return self.tf.truncatediv(x, y)

    def clipped(self, f: Callable[..., Any], x: Any, low: Any, high: Any) -> Any:
        kind = x.dtype.as_numpy_dtype
        ends = (x.dtype.min, x.dtype.max) if x.dtype.is_integer else (-np.inf, np.inf)
        return f(x, kind(ends[0]) if low is None else low, kind(ends[1]) if high is None else high)

    def taken(self, f: Callable[..., Any], x: Any, places: Any, axis: int) -> Any:
        return f(x, self.tf.where(places < 0, places + x.shape[axis], places), axis=axis)

    def largest(self, f: Callable[..., Any], x: Any, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
        if not largest:
            raise Unsupported("tf.math.top_k gives the largest alone", "attribute")
        order = list(range(x.ndim))
        order[axis], order[-1] = order[-1], order[axis]
        values, places = f(self.tf.transpose(x, order), k, index_type=self.tf.int64)
        return self.tf.transpose(values, order), self.tf.transpose(places, order)

    def convolved(self, f: Callable[..., Any], x: Any, w: Any, pads: list[tuple[int, int]], c: Call) -> Any:
        n, tf = len(pads), self.tf
        last, first = [0, *range(2, n + 2), 1], [0, n + 1, *range(1, n + 1)]  # channels last, as on the CPU
        x = tf.transpose(tf.pad(x, [(0, 0), (0, 0), *pads]), last)
        w = tf.transpose(w, [*range(2, n + 2), 1, 0])
        y = f(x, w, c.sizes("strides", n), "VALID", dilations=c.sizes("dilations", n))
        return tf.transpose(y, first)

    def normalized(self, f: Callable[..., Any], x: Any, scale: Any, b: Any, mean: Any, var: Any, c: Call) -> Any:
        dims = [-1] + [1] * (x.ndim - 2) if x.ndim > 1 else [1]
        mean, var, b, scale = (self.tf.reshape(one, dims) for one in (mean, var, b, scale))
        return f(x, mean, var, b, scale, c["epsilon"])

    def norm(self, f: Callable[..., Any], x: Any, order: int, axes: tuple[int, ...], keep: bool) -> Any:
        return self.reduced(f, x, axes, keep)

    def padded(self, f: Callable[..., Any], x: Any, pads: list[tuple[int, int]], mode: str, value: Any) -> Any:
        if mode not in ("constant", "reflect"):
            raise Unsupported(f"tf.pad has no mode {mode}", "attribute")
        return f(x, pads, mode=mode, constant_values=value)


class Call:
    """The arguments of one run: a program's attributes with defaults, and its inputs."""

    def __init__(self, library: Library, program: Program, arrays: Sequence[Any]) -> None:
        self.library, self.program, self.arrays = library, program, arrays
        self.schema = schema_of(program)
        self.version = int(program.operator.version)
        self.given = {a.name: a.value for a in program.attributes}

    @functools.cached_property
    def tensors(self) -> list[Any]:
        """Return the inputs as the library's tensors, None for an omitted one."""
        return [None if x is None else self.library.give(x) for x in self.arrays]

    def __getitem__(self, name: str) -> Any:
        """Return an attribute as a model stores it, else its default, else None."""
        if name in self.given:
            value = self.given[name]
            return float(np.float32(value)) if isinstance(value, float) else value
        told = self.schema.attributes.get(name)
        value = told.default_value if told is not None else None
        found = onnx.helper.get_attribute_value(value) if value is not None and value.type else None
        return found.decode() if isinstance(found, bytes) else found

    def array(self, place: int) -> Any:
        """Return an input as an array, None where there is none."""
        return self.arrays[place] if place < len(self.arrays) else None

    def sizes(self, name: str, count: int) -> tuple[int, ...]:
        """Return a number for each axis; 1 by default."""
        return tuple(self[name] or (1,) * count)


class Prepared:
    """A function of a library, ready to be called."""

    def __init__(self, library: Library, program: Program, form: Form, function: Callable[..., Any]) -> None:
        self.library, self.program, self.form, self.function = library, program, form, function

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for the arrays of `program.feeds`. Raises Unsupported, or what the library raises."""
        fed = {feed.name: x for feed, x in zip(self.program.feeds, inputs, strict=True)}
        arrays = [None if i is None else fed[i.name] if i.constant is None else i.array() for i in self.program.inputs]
        try:
            with np.errstate(all="ignore"):
                found = self.form(Call(self.library, self.program, arrays), self.function)
                outputs = [self.library.take(y) for y in (found if isinstance(found, tuple) else (found,))]
        except Exception as error:
            if (reason := self.library.reason(error)) != "other":
                raise Unsupported(str(error), reason) from error
            raise
        wanted = [None if o is None else element_type(o.type).dtype for o in self.program.outputs]
        for y, dtype in zip(outputs, wanted, strict=False):
            if (
                dtype is not None and y.dtype != dtype and y.dtype.name in ("float32", "float64", "int64")
            ):  # as it promotes
                raise Unsupported(f"{self.function.__name__} gives {y.dtype} for {dtype}", "type")
        return [y for y, dtype in zip(outputs, wanted, strict=False) if dtype is not None]


Form = Callable[[Call, Callable[..., Any]], Any]


def schema_of(program: Program) -> Any:
    """Return the operator version's schema. Raises Unsupported if the installed onnx has none."""
    one = program.operator
    try:
        return onnx.defs.get_schema(one.name, int(one.version), one.domain)
    except onnx.defs.SchemaError as error:
        raise Unsupported(str(error), "operator-version") from error


def check(program: Program) -> None:
    """Raise TypeError or ValueError for types, attributes and numbers of inputs that the schema excludes."""
    schema = schema_of(program)
    if unknown := {a.name for a in program.attributes} - schema.attributes.keys():
        raise ValueError(f"{program.operator} has no attribute {', '.join(sorted(unknown))}")
    if not schema.min_input <= len(program.inputs) <= schema.max_input:
        raise ValueError(f"{program.operator} takes no {len(program.inputs)} inputs")
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    for place, one in enumerate(program.inputs):
        port = schema.inputs[min(place, len(schema.inputs) - 1)]
        if one is None:
            continue
        told = f"tensor({onnx.TensorProto.DataType.Name(element_type(one.type).onnx).lower()})"
        types = allowed.get(port.type_str, {port.type_str})
        if told not in types:
            raise TypeError(f"{program.operator}: {one.name} is {told}, not one of {', '.join(sorted(types))}")
        if port.is_homogeneous:
            allowed[port.type_str] = {told}


# Forms: what an operator's program says, as a library's function wants it


def elementwise(c: Call, f: Callable[..., Any]) -> Any:
    """A function of tensors that broadcast; before version 7 by the attributes `broadcast` and `axis`."""
    tensors = c.tensors
    if "broadcast" in c.schema.attributes:
        a, b = tensors
        if not c["broadcast"] and a.shape != b.shape:
            raise ValueError(f"shapes {a.shape} and {b.shape} without broadcast")
        if c["broadcast"] and c["axis"] is not None:
            axis = c["axis"] % a.ndim
            b = (
                b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))
                if hasattr(b, "reshape")
                else c.library.function("reshape")(b, (*b.shape, *(1,) * (a.ndim - axis - b.ndim)))
            )
        tensors = [a, b]
    return f(*tensors)


def quotient(c: Call, f: Callable[..., Any]) -> Any:
    """A quotient; that of whole numbers is truncated."""
    return elementwise(c, f if c.arrays[0].dtype.kind not in "iu" else c.library.divided)


def axes_of(c: Call) -> tuple[int, ...]:
    """Return the axes to reduce, by attribute or input; none of them are all, unless the program says otherwise."""
    held = c["axes"] if "axes" in c.schema.attributes else c.array(1)
    axes = () if held is None else tuple(int(a) for a in held)
    rank = c.arrays[0].ndim
    return axes if axes or c["noop_with_empty_axes"] else tuple(range(rank))


def reduction(c: Call, f: Callable[..., Any], **more: Any) -> Any:
    """A reduction along axes; over no axis of several it is what it is given."""
    x, axes = c.tensors[0], axes_of(c)
    return c.library.reduced(f, x, axes, bool(c["keepdims"]), **more) if axes or not x.ndim else x


def formula(c: Call, f: Callable[..., Any]) -> Any:
    """A reduction that changes each element."""
    return c.library.reduced(f, c.tensors[0], axes_of(c), bool(c["keepdims"]))


def total(c: Call, f: Callable[..., Any]) -> Any:
    """A sum or product along axes, in the type of what is added up."""
    return reduction(c, f, **c.library.same_type(c.tensors[0]))


def norm_1(c: Call, f: Callable[..., Any], order: int = 1) -> Any:
    """A norm along axes."""
    return c.library.norm(f, c.tensors[0], order, axes_of(c), bool(c["keepdims"]))


def folded(c: Call, f: Callable[..., Any]) -> Any:
    """A function of two tensors, over all inputs; before version 8 of one shape."""
    same_shapes(c)
    return functools.reduce(f, c.tensors)


def stacked(c: Call, f: Callable[..., Any]) -> Any:
    """A reduction of all inputs side by side."""
    same_shapes(c)
    shape = np.broadcast_shapes(*(x.shape for x in c.arrays))
    broadcast_to, stack = c.library.function("broadcast_to"), c.library.function("stack")
    side_by_side = stack([broadcast_to(x, shape) for x in c.tensors])
    return c.library.reduced(f, side_by_side, (0,), False)


def same_shapes(c: Call) -> None:
    """Raise ValueError where inputs that did not broadcast yet differ in shape."""
    if c.version < 8 and len({x.shape for x in c.arrays}) > 1:
        raise ValueError("inputs of different shapes")


def placed(c: Call, f: Callable[..., Any]) -> Any:
    """The place of an extreme along an axis, the first of equal ones."""
    if c["select_last_index"]:
        raise Unsupported("of equal ones, the first", "attribute")
    return c.library.placed(f, c.tensors[0], c["axis"], bool(c["keepdims"]))


def scanned(c: Call, f: Callable[..., Any]) -> Any:
    """A running sum or product along an axis."""
    axis = c.array(1)
    if axis is None or axis.ndim:
        raise ValueError("the axis is a scalar")
    return c.library.scanned(f, c.tensors[0], int(axis), bool(c["exclusive"]), bool(c["reverse"]))


def shifted(c: Call, f: Callable[..., Any]) -> Any:
    """Bits shifted to either side."""
    name = f.__name__.replace("left", "right")
    if c["direction"] not in ("LEFT", "RIGHT"):
        raise ValueError(f"direction {c['direction']}")
    return elementwise(c, f if c["direction"] == "LEFT" else c.library.function(name))


def remainder(c: Call, f: Callable[..., Any]) -> Any:
    """A remainder with the sign of the divisor, or with fmod=1 of the dividend."""
    if c["fmod"] not in (0, 1):
        raise ValueError(f"fmod={c['fmod']}")
    if c["fmod"] == 0 and c.version < 28 and c.arrays[0].dtype.kind not in "iu":
        raise TypeError("fmod=0 is for whole numbers")
    return elementwise(
        c, c.library.function("fmod" if c.library.name != "tensorflow" else "truncatemod") if c["fmod"] else f
    )


def usual(c: Call, f: Callable[..., Any]) -> Any:
    """A function without parameters, which an operator has at their defaults."""
    if c.given:
        raise Unsupported(f"{f.__name__} has no {', '.join(c.given)}", "attribute")
    if c.program.operator.name == "Selu" and (c.version < 6 or c.arrays[0].dtype == np.float64):
        raise Unsupported("the constants are others in version 1, and to more digits in libraries", "attribute")
    return f(c.tensors[0])


def infinite(c: Call, f: Callable[..., Any]) -> Any:
    """Whether elements are infinite, of both signs."""
    if not (c["detect_negative"] and c["detect_positive"]):
        raise Unsupported(f"{f.__name__} looks for both signs", "attribute")
    return f(c.tensors[0])


def gelu(c: Call, f: Callable[..., Any]) -> Any:
    """Gelu by its definition or by tanh."""
    if c["approximate"] not in ("none", "tanh"):
        raise ValueError(f"approximate {c['approximate']}")
    return f(c.tensors[0], approximate=c["approximate"] if c.library.name == "torch" else c["approximate"] == "tanh")


def cast(c: Call, f: Callable[..., Any]) -> Any:
    """A conversion between types of numbers."""
    (output,) = c.program.answers
    name = output.type
    if c["to"] not in (element_type(name).onnx, onnx.TensorProto.DataType.Name(element_type(name).onnx)):
        raise ValueError(f"to={c['to']}")
    return f(c.tensors[0], getattr(c.library.modules[-1], name, element_type(name).dtype))


def clipped(c: Call, f: Callable[..., Any]) -> Any:
    """Limits by attribute or input."""
    dtype = c.arrays[0].dtype
    if "min" in c.schema.attributes:
        found = [None if c[one] is None else c.library.give(np.asarray(c[one]).astype(dtype)) for one in ("min", "max")]
    else:
        if any(x is not None and x.ndim for x in c.arrays[1:]):
            raise ValueError("limits are scalars")
        found = [*c.tensors[1:], None, None][:2]
    return c.library.clipped(f, c.tensors[0], *found)


def softmax(c: Call, f: Callable[..., Any]) -> Any:
    """Along an axis; before version 13 of all axes from one on, taken as one."""
    (x,), shape = c.tensors, c.arrays[0].shape
    axis, reshape = c["axis"], c.library.function("reshape")
    if c.version >= 13:
        return f(x, axis)
    if c.version == 11 and not -len(shape) <= axis < len(shape):
        raise ValueError(f"axis {axis} of {len(shape)}")
    axis = axis + len(shape) if axis < 0 else axis
    return reshape(f(reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:]))), 1), shape)


def gathered(c: Call, f: Callable[..., Any]) -> Any:
    """Slices along an axis."""
    return c.library.taken(f, *c.tensors, c["axis"])


def largest(c: Call, f: Callable[..., Any]) -> Any:
    """The largest along an axis; how many is an attribute or an input."""
    k = c["k"] if c.version == 1 else int(c.array(1).item())
    if k < 1:
        raise ValueError(f"k is {k}")
    if c["sorted"] == 0:
        raise Unsupported("unsorted", "attribute")
    return c.library.largest(f, c.tensors[0], k, c["axis"], c["largest"] != 0)


def places(c: Call, f: Callable[..., Any]) -> Any:
    """Where elements are not zero, an axis a row."""
    found = f(c.tensors[0])
    if isinstance(found, tuple):
        return np.stack([np.asarray(one) for one in found])
    return np.ascontiguousarray(c.library.take(found).T)


def padded(c: Call, f: Callable[..., Any]) -> Any:
    """Sides by attribute or input."""
    x, rank = c.tensors[0], c.arrays[0].ndim
    held = next(h for h in (c["paddings"], c["pads"], c.array(1)) if h is not None)
    sides = [int(n) for n in held]
    listed = c.array(3)
    axes = list(range(rank)) if listed is None else [int(a) for a in listed]
    if not all(-rank <= a < rank for a in axes):
        raise ValueError(f"axes {axes} of {rank}")
    pads = [(0, 0)] * rank
    for place, axis in enumerate(axes):
        pads[axis] = sides[place], sides[place + len(axes)]
    if c["mode"] not in ("constant", "reflect", "edge", "wrap")[: 4 if c.version >= 19 else 3]:
        raise ValueError(f"mode {c['mode']!r}")
    if min(sides, default=0) < 0:
        raise Unsupported("no function cuts sides off", "attribute")
    value = c["value"] if "value" in c.schema.attributes else c.array(2)
    value = np.asarray(0 if value is None else value).reshape(()).astype(c.arrays[0].dtype)
    return c.library.padded(f, x, pads, c["mode"], c.library.give(value))


def convolved(c: Call, f: Callable[..., Any]) -> Any:
    """A convolution; how an automatic padding is shared out is the operator's business."""
    x, w = c.arrays[:2]
    sizes = zip(x.shape[2:], w.shape[2:], strict=True)
    n = x.ndim - 2
    strides, dilations, way, told = c.sizes("strides", n), c.sizes("dilations", n), c["auto_pad"], c["pads"]
    if w.shape[1] * c["group"] != x.shape[1] or w.shape[0] % c["group"]:
        raise ValueError(f"{x.shape[1]} channels, {w.shape[0]} filters of {w.shape[1]}, {c['group']} groups")
    if way not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise ValueError(f"auto_pad {way!r}")
    if way != "NOTSET" and "pads" in c.given:
        raise ValueError("pads and auto_pad")
    if len(strides) != n or len(dilations) != n or c["kernel_shape"] not in (None, w.shape[2:]):
        raise ValueError("strides, dilations or kernel_shape do not fit")
    pads = []
    for axis, (d, k) in enumerate(sizes):
        if way in ("SAME_UPPER", "SAME_LOWER"):
            need = max(0, (-(-d // strides[axis]) - 1) * strides[axis] + (k - 1) * dilations[axis] + 1 - d)
            less, more = need // 2, need - need // 2
            pads.append((less, more) if way == "SAME_UPPER" else (more, less))
        else:
            pads.append((told[axis], told[axis + n]) if told and way != "VALID" else (0, 0))
    y = c.library.convolved(f, *c.tensors[:2], pads, c)
    bias = c.array(2)
    return y if bias is None else y + c.library.give(bias.reshape(-1, *(1,) * n))


def normalized(c: Call, f: Callable[..., Any]) -> Any:
    """A batch normalized as in inference."""
    if c["spatial"] == 0 or c["training_mode"] or len(c.program.answers) > 1:
        raise Unsupported("only inference, a channel at a time", "attribute")
    if c.arrays[0].ndim < 2:
        raise Unsupported("no channels", "rank")
    return c.library.normalized(f, *c.tensors, c)


FORMS: dict[str, Form] = {
    "bent": lambda c, f: f(c.tensors[0], c["alpha"]),
    "cast": cast,
    "clipped": clipped,
    "convolved": convolved,
    "einsum": lambda c, f: f(c["equation"], *c.tensors),
    "elementwise": elementwise,
    "folded": folded,
    "formula": formula,
    "gathered": gathered,
    "gelu": gelu,
    "infinite": infinite,
    "largest": largest,
    "norm_1": norm_1,
    "norm_2": functools.partial(norm_1, order=2),
    "normalized": normalized,
    "padded": padded,
    "placed": placed,
    "places": places,
    "quotient": quotient,
    "reduction": reduction,
    "remainder": remainder,
    "scanned": scanned,
    "shifted": shifted,
    "softmax": softmax,
    "stacked": stacked,
    "total": total,
    "transposed": lambda c, f: f(c.tensors[0], tuple(c["perm"] or reversed(range(c.arrays[0].ndim)))),
    "thresholded": lambda c, f: f(c.tensors[0], c["alpha"], 0),
    "usual": usual,
}
