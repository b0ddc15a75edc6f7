"""Badges: what they say, how wide they are, and where they are written."""

import dataclasses
import json
import re
from fractions import Fraction
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from fakes.results import case, invalid, result, write_folder

from opconform.cases.errors import OpconformError
from opconform.cli import main
from opconform.reports.badge import (
    AMBER,
    GREEN,
    GREY,
    LIME,
    ORANGE,
    RED,
    Badge,
    badge_svg,
    badges_of,
    check_badge_target,
    text_width,
    write_badges,
)
from opconform.reports.tally import Tally

SVG = "{http://www.w3.org/2000/svg}"


def tally(*results) -> Tally:
    found = Tally()
    for one in results:
        found.add(one)
    return found


def only_badge(*results):
    [badge] = badges_of(tally(*results))
    return badge


def test_a_badge_names_backend_operator_set_and_a_percentage_that_is_rounded_down() -> None:
    versions = [case("onnx/ReduceMean-1"), case("onnx/ReduceMean-18"), *[case("onnx/Mean-13")] * 998]
    badge = only_badge(result("wrong-value"), *(result(case=name) for name in versions))
    assert (badge.label, badge.message) == ("alpha · ONNX", "99.9% correct in 4 of 4 versions")
    assert "non-conformant. 99.9% of 1,001 valid cases of 2 operators correct" in badge.title


def test_a_backend_of_two_standards_has_a_badge_for_each() -> None:
    names = [case("openvino/ReduceMean-1"), case("onednn/ReduceMean"), case("onnx/Mean-13")]
    found = badges_of(tally(*(result(case=name) for name in names)), {"alpha": "2.0"})
    assert sorted(badge.label for badge in found) == [
        "alpha · ONNX",
        "alpha · OpenVINO",
        "alpha · oneDNN Graph",
    ]
    assert all(badge.title.startswith("alpha 2.0, ") for badge in found)


@pytest.mark.parametrize(
    ("results", "color"),
    [
        ([result()], GREEN),
        ([result(), result("waived")], AMBER),
        ([result(level="declared")], AMBER),
        ([*[result()] * 99, result("wrong-value")], LIME),
        ([*[result()] * 9, result("wrong-value")], AMBER),
        ([result(), result("crash")], ORANGE),
        ([result(), result("crash"), result("wrong-value")], RED),
        ([result("unsupported")], GREY),
        ([result(), result("runner-error")], GREY),
        ([result(), invalid("accepted-invalid")], GREEN),
    ],
)
def test_the_color_tells_the_share_of_correct_cases(results, color) -> None:
    assert only_badge(*results).color == color


def test_a_backend_that_answered_nothing_has_no_percentage() -> None:
    assert only_badge(result("unsupported")).message == "nothing judged of 1 version"


def test_a_badge_with_a_percentage_always_says_of_how_many_versions_it_is() -> None:
    fields = {f.name for f in dataclasses.fields(Badge)}
    assert "message" not in fields  # no text of its own can be given
    made = Badge("alpha", "onnx", "label", Fraction(1, 2), 3, 8, GREEN, "title", "alpha")
    assert made.message == "50% correct in 3 of 8 versions"
    assert ">50% correct in 3 of 8 versions<" in made.svg()
    assert dataclasses.replace(made, covered=0).message == "nothing judged of 8 versions"


def test_the_texts_fit_their_halves() -> None:
    root = ET.fromstring(badge_svg("onnxruntime · ONNX opset 1\N{EN DASH}18", "98.7%"))
    left, right = root.findall(f".//{SVG}text")
    widths = [int(text.get("textLength")) for text in (left, right)]
    assert widths == [text_width(left.text), text_width(right.text)]
    middle = int(re.search(r"H(\d+)V", root.find(f"{SVG}path").get("d"))[1])
    assert int(left.get("x")) + widths[0] < middle < int(right.get("x"))
    assert int(right.get("x")) + widths[1] < int(root.get("width"))


def test_a_text_has_room_by_its_characters() -> None:
    assert text_width("nnnnnnnnnn") == text_width("a\u0301" * 10) == 66
    assert text_width("漢字") == 22
    assert text_width("") == 0


HOSTILE = 'python:<script>alert("1")</script>&\x00\x1b[31m' + "x" * 10_000_000


def test_a_hostile_name_is_text_in_a_badge_and_its_end_is_cut_off() -> None:
    badge = only_badge(result(backend=HOSTILE))
    root = ET.fromstring(badge.svg())
    assert not list(root.iter(f"{SVG}script"))
    assert root.find(f".//{SVG}text").text.startswith('python:<script>alert("1")</script>')
    assert len(badge.svg()) < 10_000
    assert "ONNX" in badge.label
    assert json.loads(badge.endpoint())["schemaVersion"] == 1


def test_a_badge_is_heard_and_hovered() -> None:
    root = ET.fromstring(badge_svg("a", "b", title='"said" & <shown>'))
    assert root.get("role") == "img"
    assert root.get("aria-label") == root.find(f"{SVG}title").text == '"said" & <shown>'


def test_two_badges_in_one_page_share_no_ids() -> None:
    assert "id=" not in badge_svg("a", "b")


def test_a_badge_calls_a_backend_by_its_name_in_reports() -> None:
    [badge] = badges_of(tally(result(backend="python:mine:Backend")), names={"python:mine:Backend": "mine"})
    assert (badge.backend, badge.label, badge.name) == ("python:mine:Backend", "mine · ONNX", "mine-onnx")


TWO = tally(result(), result(backend="python:other:Backend"))


def test_a_file_takes_one_badge_as_svg_or_for_shields(tmp_path) -> None:
    badges = [only_badge(result())]
    write_badges(badges, tmp_path / "badge.svg")
    write_badges(badges, tmp_path / "badge.json")
    assert ET.parse(tmp_path / "badge.svg").getroot().tag == f"{SVG}svg"
    told = json.loads((tmp_path / "badge.json").read_text())
    assert told == {
        "schemaVersion": 1,
        "label": "alpha · ONNX",
        "message": "100% correct in 1 of 1 version",
        "color": GREEN,
    }


def test_several_badges_in_one_file_are_refused_with_what_to_do(tmp_path) -> None:
    with pytest.raises(OpconformError, match=r"badges \(alpha \(onnx\) and python.*add \{backend\} to the name"):
        write_badges(badges_of(TWO), tmp_path / "badge.svg")
    assert not list(tmp_path.iterdir())


def test_several_badges_have_names_of_their_own(tmp_path) -> None:
    found = write_badges(badges_of(TWO), tmp_path / "{backend}.{standard}.svg")
    assert found[0].name == "alpha.onnx.svg"
    assert re.fullmatch(r"python-other-Backend-[0-9a-f]{8}\.onnx\.svg", found[1].name)


def test_a_folder_gets_both_forms_of_every_badge(tmp_path) -> None:
    write_badges(badges_of(TWO), tmp_path / "badges")
    names = sorted(file.name for file in (tmp_path / "badges").iterdir())
    assert names[:2] == ["alpha-onnx.json", "alpha-onnx.svg"]
    assert len(names) == 4


@pytest.mark.parametrize("name", ["../../outside", "/etc/passwd", "a/b", "..", "", "a\x00b", "x" * 5000])
def test_no_name_of_a_backend_leaves_the_folder(tmp_path, name) -> None:
    for file in write_badges(badges_of(tally(result(backend=name))), tmp_path / "badges"):
        assert file.parent == tmp_path / "badges"


def test_names_that_differ_only_in_what_a_file_cannot_have_keep_apart(tmp_path) -> None:
    found = write_badges(badges_of(tally(result(backend="a:b"), result(backend="a/b"))), tmp_path / "badges")
    assert len(set(found)) == 4


def test_a_target_that_cannot_be_written_is_refused_before_a_report_is_made(tmp_path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "none" / "badge.svg", tmp_path / "file"):
        with pytest.raises(OpconformError):
            check_badge_target(target)
    check_badge_target(tmp_path / "badges")
    check_badge_target(tmp_path / "badge.svg")


def test_a_report_writes_badges_and_tells_where_it_cannot(tmp_path) -> None:
    folder = write_folder(tmp_path / "run", [result(), result(backend="beta", case=case(fill="nan"))])
    done = CliRunner().invoke(main, ["report", str(folder), "--badge", str(tmp_path / "{backend}.svg")])
    assert done.exit_code == 0, done.output
    assert {file.name for file in tmp_path.glob("*.svg")} == {"alpha.svg", "beta.svg"}
    done = CliRunner().invoke(main, ["report", str(folder), "--badge", str(tmp_path / "badge.svg")])
    assert done.exit_code == 2
    assert "add {backend} to the name" in done.output
