"""The site's pages: what they say, that text from elsewhere stays text, and that nothing foreign is overwritten."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from click.testing import CliRunner, Result
from fakes.results import case, invalid, result, write_folder

from opconform.cases.ids import Glob
from opconform.cases.results import Outcome
from opconform.cli import main
from opconform.reports.runs import Terms, put_together
from opconform.reports.site.gather import gather
from opconform.reports.site.writer import operator_page_name, shown
from opconform.runners.judging.terms import Waiver, Waivers

FIRST, NEXT = "onnx/ReduceMean-1", "onnx/ReduceMean-11"
CLAUSES = ("onnx/ReduceMean#mean", "onnx/ReduceMean#keepdims-default")
EVIL = "<script>alert(1)</script>\u202e\x00'\"&"
EMPTY_TAGS = {"meta", "link", "br", "img", "input", "hr", "area", "col", "wbr"}


def call(*arguments: object) -> Result:
    done = CliRunner().invoke(main, list(map(str, arguments)), catch_exceptions=False)
    assert "Traceback" not in done.output
    return done


class Page(HTMLParser):
    """A page read: its text, its links, and that its elements end where they should."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.text, self.links, self.ids, self.classes = "", [], [], []
        self.inline: list[str] = []
        self._open: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert not any(name.startswith("on") for name in given), given
        self.ids += [i for i in [given.get("id")] if i]
        self.classes += (given.get("class") or "").split()
        if tag == "a":
            self.links += [given["href"] or ""] if "href" in given else []
        if tag not in EMPTY_TAGS:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.inline += [data] if data.strip() else []
        else:
            self.text += data

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


def wrong(number: int, **more: object) -> list[object]:
    """So many wrong values, of alpha."""
    return [
        result("wrong-value", f"{FIRST}/float32/{n + 2}x2/-/uniform", clauses=CLAUSES, detail="got 1, want 2", **more)
        for n in range(number)
    ]


def waiver(types: str, expires: dt.date, link: str = "https://a.b/1") -> Waiver:
    """A waiver of wrong values."""
    named = Glob(f"{FIRST}/{types}/*")
    return Waiver("w.yaml:1", named, "*", Outcome.WRONG_VALUE, reason="known", link=link, owner="Ann", expires=expires)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs, of alpha and of beta; one waiver covers a case of alpha, another one nothing."""
    place = tmp_path_factory.mktemp("folders")
    known = {"reason": "known", "owner": "Ann", "backend": "*", "outcome": Outcome.WRONG_VALUE}
    waivers = Waivers(
        (
            Waiver(
                "w.yaml:1",
                Glob(f"{FIRST}/float64/*"),
                since=dt.date(2025, 12, 2),
                expires=dt.date(2026, 2, 1),
                link="https://a.b/1",
                **known,
            ),
            Waiver(
                "w.yaml:9", Glob(f"{FIRST}/int8/*"), expires=dt.date(2026, 1, 9), link="javascript:alert(1)", **known
            ),
        )
    )
    waived = waivers.entries[0].waive(result("wrong-value", case(FIRST, "float64")))
    alpha = [
        *wrong(3),
        result(case=case(FIRST), clauses=CLAUSES, behaviour={"flush": ["none"]}),
        invalid("pass", case(FIRST, edge="axes-range")),
        result("unsupported", case(FIRST, "float16"), reason="type"),
        waived,
        result(case="onnx/NoSuch-3/float32/3/-/ramp", clauses=("onnx/NoSuch#a",)),
        result("crash", "onnx/NoSuch-3/float32/4/-/ramp", detail="SIGSEGV"),
    ]
    beta = [result(case=one.case, backend="beta", clauses=one.clauses) for one in alpha[:4]]
    return [
        write_folder(place / "alpha", alpha, terms=Terms(waivers=waivers)),
        write_folder(place / "beta", beta),
    ]


@pytest.fixture(scope="module")
def site(folders: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "out"
    done = call("report", *folders, "--html", out)
    assert (done.exit_code, done.output.splitlines()[-1]) == (1, f"site: {out / 'index.html'}")
    return out


def pages(site: Path) -> Iterator[tuple[str, Page]]:
    for file in sorted(site.rglob("*.html")):
        yield str(file.relative_to(site)), Page(file)


def test_every_page_is_whole_and_every_link_leads_somewhere(site: Path) -> None:
    found = dict(pages(site))
    assert {"index.html", "matrix.html", "silences.html", "waivers.html"} <= found.keys()
    for name, page in found.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            if not link.startswith(("#", "https://")):
                target = (site / name).parent / unquote(urlsplit(link).path)
                assert target.is_file(), (name, link)
                anchor = urlsplit(link).fragment
                assert not anchor or anchor in Page(target).ids, (name, link)


def test_the_overview_has_a_verdict_a_backend(site: Path) -> None:
    words = Page(site / "index.html").words
    assert "2 backends" in words
    assert "Right in 2 of 7 judged cases; 1 crash, 3 wrong answers." in words
    assert "Right in 4 of 4 judged cases; no failure in 4 cases." in words
    assert (site / "badges" / "alpha-onnx.svg").is_file()
    assert "4 of 9 cases, in 2 kinds of failures" in Page(site / "backends" / "alpha.html").words


def test_the_overview_leads_from_a_failure_to_its_case(site: Path) -> None:
    page = Page(site / "index.html")
    told = [parse_qs(urlsplit(link).query) for link in page.links if link.startswith("case.html")]
    assert {"id": [f"{FIRST}/float32/2x2/-/uniform"], "backend": ["alpha"]} in told
    assert page.words.index("crash") < page.words.index("wrong-value", page.words.index("Worst failures"))


def test_a_cell_of_the_matrix_leads_to_what_fails(site: Path) -> None:
    page = Page(site / "matrix.html")
    assert f"cases.html?operator={FIRST}&backend=alpha&outcome=failed" in page.links
    assert f"cases.html?operator={FIRST}&backend=beta" in page.links
    assert "20% 1/5" in page.words
    data = json.loads(re.fullmatch(r"opconform.takeMatrix\((.*)\);\n", (site / "data/matrix.js").read_text())[1])
    assert data[FIRST]["float64"][0][:3] == ["all", "0%", "0/1"]
    assert data[FIRST]["float16"][1] == 0


def test_an_operator_page_has_each_backend_next_to_each_clause(site: Path) -> None:
    page = Page(site / operator_page_name(FIRST))
    text = (site / operator_page_name(FIRST)).read_text()
    for asked in (f"operator={FIRST}", "backend=alpha", "backend=beta", "clause=mean", "outcome=failed"):
        assert f'data-cases="{asked}"' in text  # of which the page's script makes links
    assert "1/4" in page.words
    assert "a missing keepdims means 1" in page.words
    assert "opsets 1 to 10 of ai.onnx" in page.words
    assert "clause-mean" in page.ids


def test_an_operator_without_spec_file_has_a_page_from_its_results(site: Path) -> None:
    words = Page(site / operator_page_name("onnx/NoSuch-3")).words
    assert "has no spec file of onnx/NoSuch-3" in words
    assert "1/2" in words


@pytest.mark.slow
def test_an_operator_page_says_what_its_version_changed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "run", [result(case=case("onnx/Mean-8"))])
    call("report", folder, "--html", tmp_path / "site")
    words = Page(tmp_path / "site" / "operators" / "onnx-Mean-8.html").words
    since = words[words.index("Since onnx/Mean-6") :]
    assert "Inputs broadcast, multidirectionally." in since
    assert "all inputs and the output have one shape" in since
    assert "Different answers" in since


def test_silences_are_shown_with_the_case_that_tells(site: Path) -> None:
    page = Page(site / "silences.html")
    assert "flush" in page.words
    assert any(link.startswith("case.html?id=") for link in page.links)


def test_waivers_are_shown_with_what_they_cover_and_how_long_they_hold(site: Path) -> None:
    page = Page(site / "waivers.html")
    assert "31 days after the run" in page.words
    assert "30 days" in page.words
    assert "since 2025-12-02" in page.words
    assert "unknown" in page.words
    assert "waives nothing" in page.words
    assert any(unquote(link).startswith(f"case.html?id={case(FIRST, 'float64')}") for link in page.links)
    assert not any(link.startswith("javascript") for link in page.links)
    assert "javascript:alert(1)" in page.words


def test_text_from_elsewhere_stays_text(tmp_path: Path) -> None:
    long = EVIL + "x" * 3_000_000
    evil = [
        result(
            "wrong-value", f"{FIRST}/float32/2x2/-/uniform", EVIL, detail=long, clauses=(f"onnx/ReduceMean#{EVIL}",)
        ),
        result("error", f"{EVIL}/float32", EVIL, detail=EVIL, reason="other"),
        result(case=case(FIRST, "float64"), backend="../up", behaviour={EVIL: [EVIL]}),
    ]
    folder = write_folder(tmp_path / "run", evil, versions={EVIL: EVIL, "../up": "1\n2"})
    call("report", folder, "--html", tmp_path / "site" / "out")
    read = dict(pages(tmp_path / "site" / "out"))
    assert all(page.inline == [] for page in read.values())
    index = read["index.html"].text
    assert "<script>alert(1)</script>\\u202e\\x00" in index
    assert "\u202e" not in index
    assert "characters in all" in "".join(page.text for name, page in read.items() if name.startswith("backends/"))
    assert sum(file.stat().st_size for file in (tmp_path / "site").rglob("*") if "vendor" not in str(file)) < 1_000_000
    assert [file.name for file in (tmp_path / "site").iterdir()] == ["out"]


def test_the_same_results_make_the_same_site(site: Path, folders: list[Path], tmp_path: Path) -> None:
    call("report", *folders, "--html", tmp_path / "again")
    for file in (f for f in site.rglob("*") if f.is_file()):
        assert file.read_bytes() == (tmp_path / "again" / file.relative_to(site)).read_bytes(), file


def test_a_folder_that_is_no_site_is_refused(folders: list[Path], tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name in ("used", "file"):
        done = call("report", *folders, "--html", tmp_path / name)
        assert done.exit_code == 2
        assert "choose a new or empty folder" in done.output
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "thesis.txt", "used"]


@pytest.mark.slow
def test_an_earlier_site_is_replaced_and_what_is_beside_it_stays(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    call("report", *folders, "--html", out)
    (out / "CNAME").write_text("example.org")
    assert (out / "operators" / "onnx-NoSuch-3.html").exists()
    call("report", folders[1], "--html", out)
    assert (out / "CNAME").read_text() == "example.org"
    assert not (out / "operators" / "onnx-NoSuch-3.html").exists()
    assert "1 backend " in Page(out / "index.html").words


def test_a_marker_that_names_files_outside_deletes_none(folders: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "precious").write_text("mine")
    (out / "opconform-site.json").write_text(json.dumps({"files": ["../precious", str(tmp_path / "precious"), ""]}))
    call("report", folders[1], "--html", out)
    assert (tmp_path / "precious").exists()


def test_what_is_gathered_can_be_read_again_by_number(folders: list[Path]) -> None:
    gathered = gather(put_together(folders))
    alpha, beta = gathered.columns
    assert [case for case in gathered.cases if case.startswith(FIRST)] == [
        gathered.cases[number] for number in gathered.by_operator_version()[FIRST]
    ]
    for number, found in gathered.results(alpha, range(len(gathered.cases))):
        assert found.case == gathered.cases[number]
        assert (place := alpha.places[number]) is not None
        assert found.outcome is place.outcome
    crash = gathered.cases.index("onnx/NoSuch-3/float32/4/-/ramp")
    assert (place := alpha.places[crash]) is not None
    assert (place.failing, place.invalid) == (True, False)
    assert (beta.places[crash], list(gathered.results(beta, [crash]))) == (None, [])
    assert (place := alpha.places[gathered.cases.index(case(FIRST, edge="axes-range"))]) is not None
    assert (place.failing, place.invalid) == (False, True)


def test_the_history_needs_a_site_to_be_shown_in(folders: list[Path], tmp_path: Path) -> None:
    (tmp_path / "h.duckdb").write_text("")
    assert call("report", *folders, "--history", tmp_path / "h.duckdb").exit_code == 2


@pytest.mark.parametrize(
    ("text", "told"), [("plain ü", "plain ü"), ("a\u200fb", "a\\u200fb"), ("\x1b[31m", "\\x1b[31m")]
)
def test_text_is_shown_without_what_is_not_seen(text: str, told: str) -> None:
    assert shown(text) == told


def test_long_text_is_cut_with_a_note() -> None:
    assert shown("x" * 9, 4) == "xxxx… (cut: 9 characters in all)"
