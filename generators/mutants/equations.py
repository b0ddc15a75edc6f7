"""Classes of Einstein-sum equations, by which implementations choose their path: reduction, transposition, product."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Equation:
    """An equation's terms, and the output's term, None without an arrow."""

    terms: tuple[str, ...]
    output: str | None

    @classmethod
    def of(cls, text: str) -> Equation:
        """Return the equation of a text such as `ij,jk->ik`."""
        terms, arrow, output = re.sub(r"\s", "", text).partition("->")
        return cls(tuple(terms.split(",")), output if arrow else None)

    @property
    def operands(self) -> int:
        """The number of operands."""
        return len(self.terms)

    @functools.cached_property
    def summed(self) -> frozenset[str]:
        """The labels that the output lacks."""
        every = _labels("".join(self.terms))
        return frozenset(x for x in every if (every.count(x) > 1 if self.output is None else x not in self.output))

    @property
    def alone(self) -> frozenset[str]:
        """The summed labels that only one operand has."""
        return frozenset(label for label in self.summed if sum(label in term for term in self.terms) == 1)

    @property
    def shared(self) -> frozenset[str]:
        """The labels of all operands."""
        return frozenset(set.intersection(*map(set, map(_labels, self.terms))))

    @property
    def is_permuted(self) -> bool:
        """Whether the output has labels in another order than the operands do."""
        output = _labels(self.output or "")
        kept = [label for label in dict.fromkeys(_labels("".join(self.terms))) if label in output]
        return kept != sorted(kept, key=output.index)

    @property
    def is_diagonal(self) -> bool:
        """Whether a term has a label twice."""
        return any(len(set(labels)) < len(labels) for labels in map(_labels, self.terms))

    @property
    def ellipses(self) -> int:
        """The number of operands with an ellipsis."""
        return sum("." in term for term in self.terms)


def _labels(term: str) -> str:
    return term.replace(".", "")


EQUATIONS: Mapping[str, tuple[str, Callable[[Equation], bool]]] = {
    "one-permuted": ("one operand, permuted", lambda e: e.operands == 1 and not e.summed and e.is_permuted),
    "one-summed": ("one operand, a part of it summed", lambda e: e.operands == 1 and bool(e.summed and e.output)),
    "one-both": ("one operand, summed and permuted", lambda e: e.operands == 1 and bool(e.summed) and e.is_permuted),
    "alone-of-two": ("a summed label in one of two operands", lambda e: e.operands == 2 and bool(e.alone)),
    "alone-of-three": ("a summed label in one of three operands", lambda e: e.operands == 3 and bool(e.alone)),
    "two-permuted": ("two operands, permuted", lambda e: e.operands == 2 and bool(e.shared) and e.is_permuted),
    "elementwise": ("two terms like the output's", lambda e: {*e.terms} == {e.output} and e.operands > 1),
    "outer": ("two operands without a common label", lambda e: e.operands == 2 and bool(e.output) and not e.shared),
    "two-summed": ("two labels of two operands summed", lambda e: e.operands == 2 and len(e.summed & e.shared) > 1),
    "batch": ("a common label summed, another one kept", lambda e: 0 < len(e.summed & e.shared) < len(e.shared)),
    "diagonal": ("a label twice in the only term", lambda e: e.operands == 1 and e.is_diagonal),
    "diagonal-of-two": ("a label twice in one of two terms", lambda e: e.operands == 2 and e.is_diagonal),
    "ellipsis": ("an ellipsis in one operand", lambda e: e.operands == e.ellipses == 1),
    "ellipses": ("an ellipsis in two operands", lambda e: e.operands == e.ellipses == 2),
    "ellipsis-of-two": ("an ellipsis in one of two operands", lambda e: (e.operands, e.ellipses) == (2, 1)),
    "ellipsis-between": ("an ellipsis between labels", lambda e: any(re.search(r"\w\.+\w", t) for t in e.terms)),
    "ellipsis-last": ("an ellipsis at the end of the output", lambda e: (e.output or "").endswith("...")),
    "implicit": ("no output's term", lambda e: e.output is None),
    "implicit-three": ("no output's term and three operands", lambda e: e.output is None and e.operands == 3),
    "scalar": ("a scalar as the output", lambda e: not e.output and e.output is not None),
    "scalar-operand": ("a scalar beside another operand", lambda e: "" in e.terms and any(e.terms)),
    "three": ("three operands", lambda e: e.operands == 3),
}
