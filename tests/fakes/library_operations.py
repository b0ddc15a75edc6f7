"""Libraries that can be asked about their operations: real ones about a few of them, and ones that go wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Container

from opconform.cases.errors import OpconformError
from opconform.cases.runner import NotInstalled
from opconform.runners.backends.onednn_operations import OneDnnOperations
from opconform.runners.backends.openvino_operations import OpenVinoOperations
from opconform.specs.audit import LibrarySchema, Listing, Question

FEW = ("Add", "Convert", "ReduceMean", "Split", "StaticTranspose", "SoftMax")


def only(listing: Listing, names: Container[str] = FEW) -> Listing:
    versions = {name: of_name for name, of_name in listing.versions.items() if name in names}
    about = (listing.library, listing.version, listing.group)
    return Listing(*about, versions, listing.later, listing.newest)


class SomeOfOpenVino(OpenVinoOperations):
    def listing(self) -> Listing:
        return only(super().listing())


class SomeOfOneDnn(OneDnnOperations):
    def listing(self) -> Listing:
        return only(super().listing())


class ReduceMeanOfOpenVino(OpenVinoOperations):
    def listing(self) -> Listing:
        return only(super().listing(), ("ReduceMean",))


class ReduceMeanOfOneDnn(OneDnnOperations):
    def listing(self) -> Listing:
        return only(super().listing(), ("ReduceMean",))


class Faulty:
    """Knows three operators: one whose questions it answers, one that it dies of, one that it fails at."""

    exact = False
    untold = ("everything else",)

    def listing(self) -> Listing:
        return Listing("Faulty", "1.0", "all", dict.fromkeys(("Fine", "ReduceMean", "Raises"), (1,)))

    def told(self, question: Question) -> LibrarySchema:
        if question.name == "ReduceMean":
            print("about to fall", flush=True)
            os.kill(os.getpid(), signal.SIGSEGV)
        if question.name == "Raises":
            raise ValueError("no such thing")
        return LibrarySchema({})


class DiesOfListing(Faulty):
    def listing(self) -> Listing:
        os._exit(9)


class DiesAtOnce(Faulty):
    def __init__(self) -> None:
        os._exit(7)


class Absent(Faulty):
    def __init__(self) -> None:
        raise NotInstalled("it needs a library: pip install it")


class Unusable(Faulty):
    def __init__(self) -> None:
        raise OpconformError("the library is broken; install it again")
