"""An audit as a page of its own: the graph with each node in the colour of its verdict, and a table of all nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from .audit import ModelAudit, NodeVerdict, Status
from .reading import ModelNode

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 150, 26, 170, 44
_COLUMNS = 12
"""The most nodes of one depth that are drawn side by side; more begin a new row."""

COLOURS: Mapping[Status, str] = {
    "right": "#2e7d32",
    "wrong": "#c62828",
    "not-judged": "#8d6e00",
    "not-covered": "#607d8b",
}
_MEANINGS: Mapping[Status, str] = {
    "right": "right",
    "wrong": "wrong",
    "not-judged": "not judged",
    "not-covered": "no spec file",
}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1c1c1c;
  background: #fff }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .6rem; vertical-align: top;
  border-bottom: 1px solid #ddd } td pre { margin: 0; white-space: pre-wrap; font-size: 12px }
.graph { overflow: auto; border: 1px solid #ddd; max-height: 80vh }
text { font: 11px system-ui, sans-serif; fill: #fff }
.mark { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em }
@media (prefers-color-scheme: dark) {
  body { background: #16181c; color: #e4e4e4 } td, th, .graph { border-color: #444 }
}
"""


def page(audit: ModelAudit, title: str, summary: Sequence[str]) -> str:
    """Return the page; it needs no network and no other file."""
    marks = " ".join(
        f'<span class="mark" style="background:{COLOURS[status]}"></span>{words}: {len(audit.of(status))}&emsp;'
        for status, words in _MEANINGS.items()
    )
    entries = "".join(f"<li>{escape(line)}</li>" for line in summary)
    rows = "".join(_row(number, verdict) for number, (_, verdict) in enumerate(audit.nodes))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1><p>{escape(audit.backend)} {escape(audit.version)}</p><ul>{entries}</ul>"
        f'<p>{marks}</p><div class="graph">{_drawn(audit)}</div><h2>Nodes</h2>'
        "<table><thead><tr><th>node</th><th>operator</th><th>verdict</th><th>share of the bound</th>"
        f"<th>inputs, outputs</th><th>detail</th></tr></thead><tbody>{rows}</tbody></table></body></html>\n"
    )


def _row(number: int, verdict: NodeVerdict) -> str:
    share = "" if verdict.share is None else f"{verdict.share:.3g}"
    ports = f"{', '.join(verdict.inputs)} → {', '.join(verdict.outputs)}"
    detail = "\n".join(text for text in (verdict.detail, verdict.reason, verdict.sample) if text)
    mark = f'<span class="mark" style="background:{COLOURS[verdict.status]}"></span>'
    return (
        f'<tr id="n{number}"><td>{escape(verdict.path)}</td><td>{escape(verdict.operator)}</td>'
        f"<td>{mark}{escape(_MEANINGS[verdict.status])}</td><td>{share}</td><td>{escape(ports)}</td>"
        f"<td><pre>{escape(detail)}</pre></td></tr>"
    )


def _drawn(audit: ModelAudit) -> str:
    """Return the graph as SVG: nodes by their depth, with lines for tensors."""
    places = dict(_places([node for node, _ in audit.nodes]))
    makers = {(node.where, name): at for at, (node, _) in enumerate(audit.nodes) for name in node.outputs if name}
    lines, boxes = [], []
    for at, (node, verdict) in enumerate(audit.nodes):
        x, y = places[at]
        for name in dict.fromkeys((*node.inputs, *node.outer)):
            maker = makers.get((node.where, name))
            if maker is not None and maker != at:
                other_x, other_y = places[maker]
                lines.append(
                    f'<line x1="{other_x + _WIDTH / 2:.0f}" y1="{other_y + _HEIGHT:.0f}" x2="{x + _WIDTH / 2:.0f}" '
                    f'y2="{y:.0f}" stroke="#9e9e9e"/>'
                )
        label = verdict.path.rpartition("/")[2][-22:]
        boxes.append(
            f'<a href="#n{at}"><rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" '
            f'fill="{COLOURS[verdict.status]}"><title>{escape(_hover(verdict))}</title></rect>'
            f'<text x="{x + 8:.0f}" y="{y + 17:.0f}">{escape(label)}</text></a>'
        )
    width = max((x for x, _ in places.values()), default=0) + _ACROSS + 10
    height = max((y for _, y in places.values()), default=0) + _DOWN + 10
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="the graph">{"".join(lines)}{"".join(boxes)}</svg>'
    )


def _hover(verdict: NodeVerdict) -> str:
    share = "" if verdict.share is None else f", {verdict.share:.3g} of its bound"
    return f"{verdict.path} {verdict.operator}: {_MEANINGS[verdict.status]}{share} {verdict.reason}".rstrip()


def _places(nodes: Sequence[ModelNode]) -> Iterator[tuple[int, tuple[float, float]]]:
    """Yield the place of each node: as deep as the longest way to it; bodies come below the rest."""
    below = 10.0
    for where in dict.fromkeys(node.where for node in nodes):
        depth_of: dict[str, int] = {}
        rows: dict[int, list[int]] = {}
        for at, node in enumerate(nodes):
            if node.where != where:
                continue
            depth = 1 + max((depth_of.get(name, -1) for name in (*node.inputs, *node.outer)), default=-1)
            depth_of.update(dict.fromkeys((name for name in node.outputs if name), depth))
            rows.setdefault(depth, []).append(at)
        for depth in sorted(rows):
            for index, at in enumerate(rows[depth]):
                line, column = divmod(index, _COLUMNS)
                yield at, (10.0 + column * _ACROSS, below + line * _DOWN)
            below += _DOWN * (1 + (len(rows[depth]) - 1) // _COLUMNS)
        below += _DOWN
