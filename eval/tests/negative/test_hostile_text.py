"""A daemon and a data file that try to steer the terminal or the CI server they are printed on."""

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ended
from tests.fakes.faults import HOSTILE

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_STEERING = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _assert_shown_and_not_obeyed(ended: Ended) -> None:
    for stream in (ended.out, ended.err):
        assert [c for c in stream if unicodedata.category(c) in _STEERING and c not in "\n\t"] == []
        assert re.findall(r"##(?:vso|teamcity)?\[", stream) == []
        assert [line for line in stream.splitlines() if line.lstrip().startswith("::")] == []
        assert "Traceback" not in stream
    assert "\\x1b]52;c;cHduZWQ=\\x07" in ended.out + ended.err


def _run(memconform: Call, sdk: Path, dataset: Path, scenario: str, *more: str | Path) -> Ended:
    return memconform(
        *("run", "--sdk", sdk, "--dataset", dataset, "--scorer", "exact", "--log-level", "debug"),
        *("--scenario", scenario, "--mode", "bm25", "--seed-reference-brain", *more),
    )


@pytest.mark.parametrize(
    ("fault", "scenario"),
    [
        ("hostile_problem", "search-retrieve-only"),
        ("hostile_problem", "ask-basic"),
        ("hostile_error", "ask-basic"),
    ],
)
def test_text_of_a_daemon_is_shown_escaped(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str, scenario: str
) -> None:
    ended = _run(memconform, scripted(fault), dataset, scenario)
    _assert_shown_and_not_obeyed(ended)
    # The record keeps what came.
    assert HOSTILE in ended.question["error"]["message"]


@pytest.mark.parametrize("fault", ["hostile_event", "hostile_media_type", "hostile_paths"])
def test_names_of_a_daemon_are_never_obeyed(
    memconform: Call, scripted: Scripted, dataset: Path, fault: str
) -> None:
    ended = _run(memconform, scripted(fault), dataset, "ask-basic", "--json", "-")
    for stream in (ended.out, ended.err):
        assert [c for c in stream if unicodedata.category(c) in _STEERING and c != "\n"] == []
        assert re.findall(r"##(?:vso|teamcity)?\[", stream) == []
    [run] = json.loads(ended.out)["runs"]
    assert len(run["questions"]) == 12


def test_the_log_of_a_daemon_that_dies_is_shown_and_not_obeyed(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    ended = _run(memconform, scripted("hostile_log"), dataset, "ask-basic")
    assert ended.code == 3
    _assert_shown_and_not_obeyed(ended)


def test_the_log_of_a_build_is_shown_and_not_obeyed(
    memconform: Call, scripted: Scripted, dataset: Path
) -> None:
    manifest = scripted()
    build = ["{python}", "-c", f"import sys; print({HOSTILE!r}); sys.exit(1)"]
    table = f'[build]\ncommand = {json.dumps(build)}\ninputs = ["sdk.toml"]\n'
    manifest.write_text(manifest.read_text() + table)
    ended = _run(memconform, manifest, dataset, "ask-basic")
    assert ended.code == 3
    _assert_shown_and_not_obeyed(ended)


def test_ids_questions_and_tags_of_a_dataset_are_shown_and_not_obeyed(
    memconform: Call, scripted: Scripted, workspace: Path
) -> None:
    row = {"question": f"What? {HOSTILE}", "expected_substrings": ["nowhere"], "tags": [HOSTILE]}
    odd = workspace / "odd.jsonl"
    odd.write_text(json.dumps({"id": HOSTILE, **row, "reference_answer": "a word"}) + "\n")
    floor = ("--floor", f"tag:{HOSTILE}=1")
    _assert_shown_and_not_obeyed(_run(memconform, scripted(), odd, "search-retrieve-only", *floor))
    _assert_shown_and_not_obeyed(memconform("datasets", "lint", odd))


def test_conform_and_its_reports_for_ci_show_and_do_not_obey(
    memconform: Call, scripted: Scripted, workspace: Path
) -> None:
    sdk = scripted("hostile_problem", on="e")
    flags = ("--case", "search-*", "--junit", "j.xml", "--markdown", "s.md", "--json", "c.json")
    ended = memconform("conform", "--sdk", sdk, *flags)
    _assert_shown_and_not_obeyed(ended)
    for name in ("j.xml", "s.md"):
        text = (workspace / name).read_text()
        assert [c for c in text if unicodedata.category(c) in _STEERING and c not in "\n\t"] == []
        assert [line for line in text.splitlines() if line.lstrip().startswith("::")] == []
    assert "\\x1b]52" in (workspace / "j.xml").read_text()
    prose = re.sub(r"```.*?```", "", (workspace / "s.md").read_text(), flags=re.DOTALL)
    assert re.findall(r"(?<!\\)<img", prose) == []
