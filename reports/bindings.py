"""What two bonded operator versions have in common: a report of `opconform diff`, and pages of conversions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from ..cases.errors import OpconformError
from ..generators.arithmetic.tape import Facts
from ..generators.arithmetic.tape import Port as GivenPort
from ..generators.comparing.agreements import Agreement, Disagreement, agreement, plans
from ..generators.comparing.bonds import Bond, bond, reference
from ..generators.comparing.differences import VersionAnswers
from ..generators.comparing.their_calls import THEIRS
from ..generators.parameters import plain_text
from ..generators.source import GeneratedCases
from ..specs.loader import Library
from ..specs.model import AttributeSignature, Binding, Port, Signature, VersionSpec
from .difference import (
    SignatureRow,
    attribute_text,
    cell,
    code,
    default_text,
    port_text,
    print_rows,
    rule_text,
    said_text,
)
from .text import STANDARD_NAMES, markdown_table

_MOST = 16  # cases of each plan on a page
_SHOWN = 2  # differences of a pair on a page
_ELEMENTS = 4
_LISTED = 6  # reasons why one standard has no word for what the other says


def bond_of(source: GeneratedCases, each: str, other: str) -> Bond | None:
    """Return the bond by which two versions of different standards are compared; None if names are enough.

    Raises OpconformError for names of no version.
    """
    result = bond(source.library, each, other)
    if result is None or result.our_spec.standard == result.their_spec.standard:
        return None
    by_names = reference(result.our_spec) == reference(result.their_spec)
    unbound = result.ours.binding is None and result.theirs.binding is None
    return None if by_names and unbound else result


def binding_rows(result: Agreement) -> Iterator[SignatureRow]:
    """Yield what maps to what: inputs, outputs, attributes with constants and words, clauses, silences.

    `old` is a part of theirs, and `new` what it means in ours.
    """
    bond = result.bond
    ours = bond.ours.signature
    for port in bond.theirs.signature.inputs:
        own = bond.inputs.get(port.name)
        yield SignatureRow("input", port_text(port), _own(ours, own) if own else None)
    for port in bond.theirs.signature.outputs:
        its = ours.output(bond.outputs.get(port.name, ""))
        yield SignatureRow("output", port_text(port), None if its is None else port_text(its))
    for attribute in bond.theirs.signature.attributes:
        yield from _attribute_rows(result, attribute)
    for name in bond.only_ours:
        yield SignatureRow("attribute" if ours.attribute(name) else "input", None, _own(ours, name))
    for port in ours.outputs:
        if port.name not in bond.outputs.values():
            yield SignatureRow("output", None, port_text(port))
    if bond.stated:
        yield from _stated_rows(bond.binding)


def _stated_rows(binding: Binding) -> Iterator[SignatureRow]:
    for name, own in binding.clauses.items():
        yield SignatureRow("clause", name, own or "holds by construction")
    for name, option in binding.silences.items():
        yield SignatureRow("silence", name, option.removeprefix("=") if option.startswith("=") else f"is {option}")
    if binding.by:
        yield SignatureRow("prepared by", None, binding.by)


def _attribute_rows(result: Agreement, attribute: AttributeSignature) -> Iterator[SignatureRow]:
    bound, text = result.bond.attributes.get(attribute.name), attribute_text(attribute)
    if attribute.name in result.prepared:
        yield SignatureRow("attribute", text, _prepared(result, attribute.name))
    elif bound is None:
        yield SignatureRow("attribute", text, None)
    elif bound.source is None:
        constant = "absent" if bound.constant is None else f"always {default_text(bound.constant)}"
        yield SignatureRow("attribute", text, constant)
    else:
        yield SignatureRow("attribute", text, _own(result.bond.ours.signature, bound.source))
        for own, word in bound.words.items():
            yield SignatureRow("word", f"{attribute.name}={default_text(word)}", f"{bound.source}={own}")


def _own(signature: Signature, name: str) -> str:
    attribute, port = signature.attribute(name), signature.input(name)
    return attribute_text(attribute) if attribute is not None else port_text(port) if port is not None else name


def _prepared(result: Agreement, name: str) -> str:
    values = result.prepared[name]
    shown = f"{' or '.join(values)}, by " if len(values) <= _SHOWN else "by "
    return f"{shown}{result.bond.binding.by}"


def types_alone(version: VersionSpec, other: VersionSpec, ports: Mapping[str, str]) -> list[str]:
    """Return the types that inputs of a version take and the inputs bound to them do not, each input with its types.

    ports: inputs of the version, with the other's.
    """
    result: dict[str, str] = {}
    for name, own in ports.items():
        port, its = version.signature.input(name), other.signature.input(own)
        if port is None or its is None:
            continue
        allowed, known = _types(version.signature, port), set(_types(other.signature, its))
        alone = [type_ for type_ in allowed if type_ not in known]
        if alone:
            result.setdefault(", ".join(alone), name)
    return [f"{name}: {types}" for types, name in result.items()]


def _types(signature: Signature, port: Port) -> Sequence[str]:
    return signature.types.get(port.type, (port.type,))


def alone(result: Agreement) -> tuple[list[str], list[str]]:
    """Return what only ours has, and only theirs: attributes, inputs, outputs and types."""
    bond = result.bond
    ours, theirs = list(bond.only_ours), [name for name in bond.only_theirs if name not in result.prepared]
    ours += [p.name for p in bond.ours.signature.outputs if p.name not in bond.outputs.values()]
    theirs += [p.name for p in bond.theirs.signature.outputs if p.name not in bond.outputs]
    back = {own: name for name, own in bond.inputs.items()}
    ours += types_alone(bond.ours, bond.theirs, back)
    theirs += types_alone(bond.theirs, bond.ours, bond.inputs)
    return ours, theirs


def rules_alone(bond: Bond) -> tuple[list[str], list[str]]:
    """Return the clauses and silences of ours, and of theirs, that the binding names on no side."""
    if not bond.stated:
        return [], []
    bound = {*bond.binding.clauses.values(), *(option.removeprefix("=") for option in bond.binding.silences.values())}
    named = {*bond.binding.clauses, *bond.binding.silences}
    ours = [name for name in (*bond.ours.clauses, *bond.ours.silences) if name not in bound]
    return ours, [name for name in (*bond.theirs.clauses, *bond.theirs.silences) if name not in named]


def bond_report(console: Console, source: GeneratedCases, bond: Bond) -> None:
    """Print a binding, what only one version has, and the smallest inputs with different answers."""
    result = agreement(source, bond)
    names = (str(bond.theirs.operator), str(bond.ours.operator))
    print_rows(console, f"binding ({bond.why})", *names, binding_rows(result))
    for line in _report_lines(result):
        console.print(Text(line), soft_wrap=True)


def _report_lines(result: Agreement) -> Iterator[str]:
    bond = result.bond
    names = (str(bond.ours.operator), str(bond.theirs.operator))
    for name, parts in zip(names, alone(result), strict=True):
        yield from [f"only {name}: {'; '.join(parts)}"] if parts else []
    for name, rules in zip(names, rules_alone(bond), strict=True):
        yield from [f"rules of {name} that the binding does not name: {', '.join(rules)}"] if rules else []
    yield ""
    yield shared_text(result)
    for number, difference in enumerate(result.disagreements, 1):
        yield ""
        yield f"{number}. {difference_text(difference)}"
        for name, said, rules_of in zip(names, difference.said, difference.rules, strict=True):
            yield f"   {name:<24} {said_text(_plain(said))}"
            yield from (f"   {'':<24}   {rule_text(rule)}" for rule in rules_of)
        yield f"   {'case':<24} {difference.ours.case}"
        yield f"   {names[0]:<24} {our_call(difference)}"
        yield f"   {names[1]:<24} {their_call_text(difference)}"
    for name, reasons in ((names[1], result.ours_alone), (names[0], result.theirs_alone)):
        if reasons:
            yield ""
            yield f"inputs of the other plan that were not translated to {name}: {sum(reasons.values())}"
            listed = sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0]))
            yield from (f"   {count} times: {reason}" for reason, count in listed[:_LISTED])


def shared_text(result: Agreement) -> str:
    """Return how many inputs both versions have, and whether their answers are the same."""
    if not result.shared:
        known = result.bond.stated or result.bond.through
        return "no input of the two plans is one of both" if known else "names alone do not say what corresponds"
    count = f"{result.shared} input{'s' if result.shared > 1 else ''}"
    if not result.disagreements:
        return f"the same answers to all {count} that both have"
    return f"{count} that both have; the smallest with different answers:"


def difference_text(difference: Disagreement) -> str:
    """Return what kind of difference it is, in words."""
    if difference.left_out:
        what = f"{', '.join(difference.left_out)} left out on both sides"
    elif not difference.said[0].answers or not difference.said[1].answers:
        what = "valid in one of them only"
    else:
        what = "different answers" if difference.disjoint else "one of them admits more"
    return f"{what} ({difference.count} input{'s' if difference.count > 1 else ''})"


def _plain(said: VersionAnswers) -> VersionAnswers:
    """Return answers whose silences have the names of their own spec."""
    answers = tuple(
        replace(answer, labels=tuple((name.removeprefix(THEIRS), option) for name, option in answer.labels))
        for answer in said.answers
    )
    return replace(said, answers=answers)


def _telling(said: Sequence[VersionAnswers]) -> int | None:
    """Return the first element of the first output in which two sides differ; None if they differ in more, or all."""
    outputs = [[answer.outputs[:1] for answer in answers.answers] for answers in said]
    first = [output for several in outputs for output in several]
    if not all(outputs) or not all(first) or len({output.shape for (output,) in first}) != 1:
        return None
    columns = [[output.values or () for (output,) in several] for several in outputs]
    count = min(len(values) for several in columns for values in several)
    both = ([{_number(values[at]) for values in several} for several in columns] for at in range(count))
    return next((at for at, (each, other) in enumerate(both) if each != other), None)


def _said_cell(said: VersionAnswers, at: int | None) -> str:
    """Return the answers of one side for a cell: the element `at`, or the first ones."""
    if not said.answers:
        return "invalid"
    texts = []
    for answer in said.answers:
        if answer.kind in ("rejected", "anything") or not answer.outputs:
            texts.append({"rejected": "a refusal", "anything": "any answer"}.get(answer.kind, answer.kind))
            continue
        output = answer.outputs[0]
        if output.values is None:
            texts.append("any value")
        elif at is not None:
            texts.append(f"element {at} is {_number(output.values[at])}")
        else:
            shown = ", ".join(map(_number, output.values[:_ELEMENTS])) + ", …" * (len(output.values) > _ELEMENTS)
            texts.append(f"shape {'x'.join(map(str, output.shape)) or 'scalar'}: [{shown}]")
    return "; or ".join(dict.fromkeys(texts))


def _number(value: object) -> str:
    return f"{value:.9g}" if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)


def our_call(difference: Disagreement) -> str:
    """Return the call of ours: attributes that it gives, and inputs with types and shapes."""
    facts = difference.ours.facts
    attributes = {name: facts.attributes.get(name) for name in sorted(facts.given)}
    return _call_text(attributes, _ports(facts))


def their_call_text(difference: Disagreement) -> str:
    """Return the call of theirs that it amounts to, without the attributes that are left out on both sides."""
    theirs = difference.theirs
    ports = {
        name: ["x".join(map(str, array.shape[1:])) or "scalar" for array in several]
        for name, several in theirs.inputs.items()
        if several is not None
    }
    return _call_text(theirs.attributes if not difference.left_out else {}, ports)


def _ports(facts: Facts) -> dict[str, list[str]]:
    result = {}
    for name, ports in facts.ports.items():
        if ports is not None:
            several = (ports,) if isinstance(ports, GivenPort) else ports
            result[name] = [f"{each.type} {'x'.join(map(str, each.shape)) or 'scalar'}" for each in several]
    return result


def _call_text(attributes: Mapping[str, Any], ports: Mapping[str, Sequence[str]]) -> str:
    parts = [f"{name} {' '.join(shapes)}" for name, shapes in ports.items()]
    return ", ".join([*parts, *(f"{name}={plain_text(value)}" for name, value in attributes.items())])


def bond_json(source: GeneratedCases, bond: Bond) -> str:
    """Return the same as `bond_report` as JSON."""
    result = agreement(source, bond)
    names = (str(bond.ours.operator), str(bond.theirs.operator))
    return json.dumps(
        {
            "ours": names[0],
            "theirs": names[1],
            "source": bond.why,
            "binding": [{"part": r.part, "theirs": r.old, "ours": r.new} for r in binding_rows(result)],
            "alone": dict(zip(names, alone(result), strict=True)),
            "shared": result.shared,
            "without_a_counterpart": {names[0]: dict(result.ours_alone), names[1]: dict(result.theirs_alone)},
            "behaviour": [_difference_json(names, difference) for difference in result.disagreements],
        },
        indent=2,
    )


def _difference_json(names: Sequence[str], difference: Disagreement) -> Mapping[str, Any]:
    sides = zip(names, difference.said, difference.rules, strict=True)
    return {
        "case": difference.ours.case,
        "left_out": list(difference.left_out),
        "disjoint": difference.disjoint,
        "inputs": difference.count,
        "calls": dict(zip(names, (our_call(difference), their_call_text(difference)), strict=True)),
        **{
            name: {"valid": bool(said.answers), "answer": said_text(_plain(said)), "rules": [r.id for r in rules]}
            for name, said, rules in sides
        },
    }


# The page of conversions


def pairs(library: Library, standard: str) -> Iterator[tuple[VersionSpec, VersionSpec]]:
    """Yield each operator version of a standard with ONNX's: the newest, and the one that the spec names."""
    by_name = {name.partition("/")[2].lower(): name for name in library.operators() if name.startswith("onnx/")}
    for spec in library.specs(name for name in library.operators() if name.startswith(f"{standard}/")):
        for version in spec.versions.values():
            binding = version.binding
            if binding is not None and binding.operator.startswith("onnx/"):
                formula = library.spec(binding.operator)
                newest = [*formula.versions.values()][-1]
                yield version, newest
                if binding.version != newest.operator.version:
                    yield version, formula.version(binding.version)
            elif spec.name.lower() in by_name:
                yield version, [*library.spec(by_name[spec.name.lower()]).versions.values()][-1]


def conversions(standard: str, specs: Path | None = None) -> str:
    """Return the page *From ONNX to* a standard as Markdown. Raises OpconformError for an unknown standard."""
    if standard not in STANDARD_NAMES or standard == "onnx":
        raise OpconformError(f"no page of conversions to {standard!r}; there is openvino and onednn")
    source, name = GeneratedCases(specs), STANDARD_NAMES[standard]
    both = [*pairs(source.library, standard)]
    planned = plans(source, [version for pair in both for version in pair])
    rows = [_row(source, ours, theirs, planned) for ours, theirs in both]
    bound = {ours.operator.name for ours, _ in both}
    without = [
        spec.name
        for spec in source.library.specs(n for n in source.library.operators() if n.startswith(f"{standard}/"))
        if spec.name not in bound
    ]
    lines = [
        f"# From ONNX to {name}",
        "",
        f"Generated from the spec files by `opconform dev bindings {standard} --markdown`. "
        "A test checks that it is current.",
        "",
        f"Each line compares an operation of {name} with the ONNX operator that has its formula: "
        "in its newest version, and in the version that the spec is bound to.",
        f"The answers come from both formulas, on up to {_MOST} small inputs of each test plan, "
        "translated by the binding in both directions. `opconform diff A B` shows one line in full, with every input.",
        "",
        *markdown_table(
            [name, "ONNX", "binding", "smallest input with different answers", f"only {name}", "only ONNX"],
            rows,
        ),
        "",
        "## Without a counterpart in ONNX",
        "",
        ", ".join(without) + "." if without else "None.",
        "",
    ]
    return "\n".join(lines)


def _row(
    source: GeneratedCases, ours: VersionSpec, theirs: VersionSpec, planned: Mapping[str, Sequence[str]]
) -> list[str]:
    names = [str(version.operator).partition("/")[2] for version in (ours, theirs)]
    result = bond(source.library, str(theirs.operator), str(ours.operator))
    if result is None:
        raise OpconformError(f"{ours.operator} has no bond with {theirs.operator}")
    compared = agreement(source, result, planned, _MOST)
    return [*names, binding_cell(compared), _differences_cell(compared), *map(_cell, map("; ".join, alone(compared)))]


def binding_cell(result: Agreement) -> str:
    """Return a binding in one cell: names that differ, constants, words; or that all names are the same."""
    bond = result.bond
    ports = (*bond.inputs.items(), *bond.outputs.items())
    parts = [f"{code(own)} is {code(name)}" for name, own in ports if own != name]
    for name, bound in bond.attributes.items():
        if name in result.prepared:
            continue
        if bound.source is None:
            parts += [f"{code(name)}: {default_text(bound.constant)}"] if bound.constant is not None else []
        elif bound.words:
            words = ", ".join(f"{own} = {default_text(word)}" for own, word in bound.words.items())
            parts.append(f"{code(bound.source)} is {code(name)}: {words}")
        elif bound.source != name:
            parts.append(f"{code(bound.source)} is {code(name)}")
        parts += _default_parts(bond, name)
    if bond.stated and bond.binding.by:
        sets = ", ".join(map(code, result.prepared))
        parts.append(f"{code(bond.binding.by)} prepares the inputs{' and sets ' if sets else ''}{sets}")
    if not bond.stated:
        parts.append(bond.why)
    return "; ".join(parts) or "the same names"


def _default_parts(bond: Bond, name: str) -> Iterator[str]:
    """Yield that an attribute has another default on the other side."""
    bound = bond.attributes[name]
    own = bond.ours.signature.defaults.get(bound.source or "")
    other = bond.theirs.signature.defaults.get(name)
    if own is not None and other is not None and not bound.words and own != other:
        yield f"{code(bound.source or '')} is {default_text(own)} by default, in ONNX {default_text(other)}"


def _differences_cell(result: Agreement) -> str:
    if not result.shared or not result.disagreements:
        return shared_text(result)
    shown = [_difference_cell(result.bond, difference) for difference in result.disagreements[:_SHOWN]]
    more = len(result.disagreements) - len(shown)
    ours, theirs = result.bond.ours.operator, result.bond.theirs.operator
    rest = [f"{more} more: `opconform diff {theirs} {ours}`"] if more else []
    return "<br>".join([*shown, *rest])


def _difference_cell(bond: Bond, difference: Disagreement) -> str:
    at = _telling(difference.said)
    said = [
        f"{STANDARD_NAMES[version.operator.standard]} {_said_cell(answers, at)}{_because(rules)}"
        for version, answers, rules in zip((bond.ours, bond.theirs), difference.said, difference.rules, strict=True)
    ]
    left_out = f"{', '.join(map(code, difference.left_out))} left out, " if difference.left_out else ""
    more = "" if difference.disjoint else "one admits more, "
    return f"{left_out}{more}{code(difference.ours.case)}: {_cell('; '.join(said))}"


def _because(rules: Sequence[Any]) -> str:
    return f" ({', '.join(rule.id for rule in rules)})" if rules else ""


def _cell(text: str) -> str:
    return cell(text).replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
