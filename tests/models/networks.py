"""Networks for the tests of models: real layers, with random weights."""

from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper


class Network:
    """A network under construction: `value` is the last value's name."""

    def __init__(self, shape: Sequence[int], seed: int = 0) -> None:
        self.nodes, self.weights = [], []
        self.draw = np.random.default_rng(seed)
        self.value = "x"
        self.given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *shape])

    def weight(self, *shape: int, scale: float = 0.3) -> str:
        """Add random weights."""
        return self.constant((self.draw.standard_normal(shape) * scale).astype(np.float32))

    def constant(self, array: np.ndarray) -> str:
        """Add an initializer."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, *more: str, first: str | None = None, outputs: int = 1, **attributes: object) -> str:
        """Add a node after the last value, or after `first`."""
        own = [f"v{len(self.nodes)}", *(f"v{len(self.nodes)}_{i}" for i in range(1, outputs))]
        given = [self.value if first is None else first, *more]
        self.nodes.append(helper.make_node(op, given, own, f"{op}_{len(self.nodes)}", **attributes))
        self.value = own[0]
        return self.value

    def model(self, opset: int = 18) -> ModelProto:
        """Return the model."""
        result = helper.make_tensor_value_info(self.value, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "network", [self.given], [result], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def residual(blocks: int = 12) -> ModelProto:
    """Return a network of some 100 nodes: convolutions with skips, then layers of attention."""
    net = Network((3, 16, 16))
    net.add("Conv", net.weight(8, 3, 3, 3), net.weight(8), pads=[1, 1, 1, 1])
    for block in range(blocks):
        skip = net.value
        net.add("Conv", net.weight(8, 8, 3, 3, scale=0.1), net.weight(8), pads=[1, 1, 1, 1])
        net.add("Relu" if block % 2 else "Sigmoid")
        net.add("Conv", net.weight(8, 8, 1, 1, scale=0.3))
        net.add("Add", skip)
        if block % 4 == 3:
            net.add("MaxPool" if block % 8 == 3 else "AveragePool", kernel_shape=[2, 2], strides=[1, 1])
    net.add("Reshape", net.constant(np.array([0, 8, -1])))
    net.add("Transpose", perm=[0, 2, 1])
    for _ in range(4):
        own = net.value
        net.add("LayerNormalization", net.weight(8, scale=1.0), net.weight(8), axis=-1)
        normed = net.value
        query = net.add("MatMul", net.weight(8, 8), first=normed)
        key = net.add("MatMul", net.weight(8, 8), first=normed)
        value = net.add("MatMul", net.weight(8, 8), first=normed)
        turned = net.add("Transpose", first=key, perm=[0, 2, 1])
        net.add("MatMul", turned, first=query)
        net.add("Mul", net.constant(np.array(8**-0.5, np.float32)))
        net.add("Softmax", axis=-1)
        net.add("MatMul", value)
        net.add("Add", own)
    net.add("ReduceMean", net.constant(np.array([1])), keepdims=0)
    net.add("Gemm", net.weight(8, 5), net.weight(5))
    return net.model()
