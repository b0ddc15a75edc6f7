"""Backends for a cluster: one that needs a device, and one that takes the node down with it."""

from __future__ import annotations

import os
import signal
import time

from fakes.backends import ONE, Right

from opconform.cases.elements import Array

WORKER = "FAKE_DASK_WORKER"
"""The environment variable in which a worker of the tests tells its process id."""

STRUCK = "struck"
"""The file, in the current folder of the workers, with a line for each time that a node might have been killed."""


class NeedsDevice(Right):
    name = "needs-device"

    def __init__(self) -> None:
        if "FAKE_DEVICE" not in os.environ:
            raise OSError("no device found")


class KillsNode(Right):
    name = "kills-node"

    def reduce(self, data: Array, axes: tuple[int, ...], keepdims: bool) -> Array:
        if data.shape == ONE and self.strikes():
            os.kill(int(os.environ[WORKER]), signal.SIGKILL)
            time.sleep(60)
        return super().reduce(data, axes, keepdims)

    def strikes(self) -> bool:
        return True


class KillsNodeOnce(KillsNode):
    """As a power cut does."""

    def strikes(self) -> bool:
        with open(STRUCK, "a") as file:  # noqa: PTH123 - its position is what is asked for
            file.write("once\n")
            return file.tell() == len("once\n")


class AVersionEach(Right):
    """What comes of installing backends by hand."""

    def version(self) -> str:
        return os.environ[WORKER]
