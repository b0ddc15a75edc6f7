"""The kill matrix as one static page that needs nothing else: no script, no network."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from html import escape

from .matrix import Cell, ClauseKills, Matrix
from .matrix_text import ABOUT, KINDS, figures
from .text import NOTHING, counted, printable

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --page: #fff; --panel: #f6f8fa; --line: #d1d9e0;
  --good: #1a7f37; --good-soft: #dafbe1; --bad: #b3261e; --bad-soft: #ffebe9; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --page: #0d1117; --panel: #151b23;
  --line: #3d444d; --good: #56d364; --good-soft: #12261e; --bad: #ff8f87; --bad-soft: #3a1719; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 92rem; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.9rem; margin: 0 0 .5rem; } h2 { margin: 2.5rem 0 .75rem; font-size: 1.3rem; }
p { max-width: 48rem; } .soft, small { color: var(--soft); }
code { font: .86em ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.verdict { display: inline-block; padding: .3rem .8rem; border-radius: 2rem; font-weight: 600; }
.good { color: var(--good); background: var(--good-soft); } .bad { color: var(--bad); background: var(--bad-soft); }
.wide { overflow-x: auto; border: 1px solid var(--line); border-radius: .5rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th[scope=row], th.left, td.left { text-align: left; } td.text { text-align: left; white-space: normal; }
thead th { background: var(--panel); font-size: .85rem; vertical-align: bottom; white-space: normal; }
tbody tr:last-child > * { border-bottom: 0; } tbody tr:hover > * { background: var(--panel); }
tr.kind th { background: var(--panel); color: var(--soft); font-size: .8rem; letter-spacing: .06em;
  text-transform: uppercase; }
th[scope=row] { font-weight: 500; position: sticky; left: 0; background: var(--page); }
tr:hover th[scope=row] { background: var(--panel); }
th[scope=row] small { display: block; font-weight: 400; white-space: normal; min-width: 16rem; }
td.bad { font-weight: 700; } td.none { color: var(--soft); }
details { margin: .75rem 0; } summary { cursor: pointer; font-weight: 500; }
ul { padding-left: 1.2rem; } li { margin: .2rem 0; }
"""


_CODE = re.compile("`([^`]*)`")


def matrix_html(matrix: Matrix, smoke: Sequence[str]) -> str:
    """Return the page."""
    parts = [_opening(matrix), _figures(matrix, smoke), _wrong(matrix), _mutants(matrix), _rest(matrix, smoke)]
    body = "".join(itertools.chain(*parts))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>opconform: kill matrix</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _opening(matrix: Matrix) -> Iterator[str]:
    survivors, alarms = len(matrix.survivors()), len(matrix.false_alarms())
    mood = "bad" if survivors or alarms else "good"
    verdict = f"{counted(survivors, 'survivor')}, {counted(alarms, 'false alarm')}"
    yield f'<h1>Kill matrix</h1>\n<p><span class="verdict {mood}">{verdict}</span></p>\n'
    about = _CODE.sub(r"<code>\1</code>", escape(ABOUT))
    yield f"<p>{about}</p>\n"


def _figures(matrix: Matrix, smoke: Sequence[str]) -> Iterator[str]:
    heads = ("cases", "killed", "alive", "not applicable", "variants", "blamed", "smoke suite")
    yield '<h2 id="versions">Operator versions</h2>\n<div class="wide"><table>\n<thead><tr>'
    yield '<th scope="col" class="left">operator version</th>' + "".join(f'<th scope="col">{h}</th>' for h in heads)
    yield "</tr></thead>\n<tbody>\n"
    for name, *numbers in figures(matrix, smoke):
        cells = [_figure(head, number) for head, number in zip(heads, numbers, strict=True)]
        yield f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>\n'
    yield "</tbody></table></div>\n"


def _figure(head: str, number: str) -> str:
    bad = head in ("alive", "blamed") and number != "0"
    return f'<td class="bad">{number}</td>' if bad else f"<td>{number}</td>"


def _wrong(matrix: Matrix) -> Iterator[str]:
    """Survivors and false alarms, if there are any."""
    survivors, alarms = matrix.survivors(), matrix.false_alarms()
    if survivors or alarms:
        yield '<h2 id="wrong">What is wrong with the suite</h2>\n<ul>\n'
    for version, name in survivors:
        text = escape(matrix.mutants[name].text)
        yield f"<li><strong>survives</strong> <code>{escape(name)}</code> on {escape(version)}: {text}</li>\n"
    for version, name, cell in alarms:
        case = escape(printable(cell.smallest or ""))
        yield f"<li><strong>blamed</strong> <code>{escape(name)}</code> on {escape(version)}: {cell.outcome}, "
        yield f"{counted(cell.cases, 'case')}, the smallest <code>{case}</code></li>\n"
    if survivors or alarms:
        yield "</ul>\n"


def _mutants(matrix: Matrix) -> Iterator[str]:
    yield '<h2 id="mutants">Mutants</h2>\n<p>How many cases kill each. '
    yield f"{NOTHING} stands where a mutant does not apply; the reason is shown on hovering, "
    yield "as is the smallest case where it is killed.</p>\n"
    yield '<div class="wide"><table>\n<thead><tr><th scope="col" class="left">mutant</th>'
    yield "".join(f'<th scope="col">{_breakable(v)}</th>' for v in matrix.versions)
    yield "</tr></thead>\n"
    for kind in KINDS:
        names = [name for name, mutant in matrix.mutants.items() if mutant.kind == kind]
        if names:
            span = len(matrix.versions) + 1
            yield f'<tbody>\n<tr class="kind"><th class="left" colspan="{span}" scope="rowgroup">{kind}</th></tr>\n'
            yield from (_row(matrix, name) for name in names)
            yield "</tbody>\n"
    yield "</table></div>\n"


def _breakable(version: str) -> str:
    """Return an operator version that may be broken between its words, so that columns stay narrow."""
    return re.sub(r"(?<=/)|(?<=[a-z])(?=[A-Z])", "<wbr>", escape(version)).replace("-", "&#8209;")


def _row(matrix: Matrix, name: str) -> str:
    mutant = matrix.mutants[name]
    required = "".join(f" Judged under --require {s}={o}." for s, o in mutant.required.items())
    head = f"<code>{escape(name)}</code><small>{escape(mutant.text)}.{escape(required)}</small>"
    cells = "".join(_cell(matrix.cell(name, version)) for version in matrix.versions)
    return f'<tr><th scope="row">{head}</th>{cells}</tr>\n'


def _cell(cell: Cell) -> str:
    if cell.status == "killed":
        return f'<td title="{escape(printable(f"{cell.outcome}: {cell.smallest}"))}">{cell.cases}</td>'
    if cell.status == "survived":
        return '<td class="bad">alive</td>'
    return f'<td class="none" title="{escape(cell.reason or "")}">{NOTHING}</td>'


def _rest(matrix: Matrix, smoke: Sequence[str]) -> Iterator[str]:
    yield '<h2 id="smallest">Smallest cases</h2>\n'
    for version in matrix.versions:
        yield f"<details><summary>{escape(version)}</summary>\n<ul>\n"
        for name in matrix.by_status(version, "killed"):
            cell = matrix.cell(name, version)
            case = escape(printable(cell.smallest or ""))
            yield f"<li><code>{escape(name)}</code>: {cell.outcome} on <code>{case}</code></li>\n"
        yield "</ul></details>\n"
    yield '<h2 id="variants">Compliant variants</h2>\n<details><summary>'
    tried = {n: v for n, v in matrix.variants.items() if any(n in e.variants for e in matrix.evidence.values())}
    yield f"{counted(len(tried), 'variant')}, none of which may be blamed</summary>\n<ul>\n"
    for name, variant in tried.items():
        yield f"<li><code>{escape(name)}</code> {escape(variant.text)}</li>\n"
    yield "</ul></details>\n"
    yield '<h2 id="clauses">Clauses</h2>\n<p>How many mutants the cases of a clause kill, '
    yield "and how many only they kill.</p>\n"
    yield '<div class="wide"><table>\n<thead><tr><th scope="col" class="left">clause</th><th scope="col">cases</th>'
    yield '<th scope="col">kills</th><th scope="col">only they kill</th></tr></thead>\n<tbody>\n'
    yield from (_clause(clause) for clause in matrix.clauses())
    yield "</tbody></table></div>\n"
    yield '<h2 id="smoke">Smoke suite</h2>\n<details><summary>'
    yield f"{counted(len(smoke), 'case')} that kill as many mutants as all</summary>\n<ul>\n"
    yield from (f"<li><code>{escape(printable(case))}</code></li>\n" for case in smoke)
    yield "</ul></details>\n"


def _clause(clause: ClauseKills) -> str:
    kills = "invalid inputs alone" if clause.invalid_alone else f"{clause.killed:,}"
    only = f"{len(clause.only):,}" if clause.only else NOTHING if clause.invalid_alone else "none"
    name = f'<th scope="row"><code>{escape(clause.clause)}</code></th>'
    return f"<tr>{name}<td>{clause.cases:,}</td><td>{kills}</td><td>{only}</td></tr>\n"
