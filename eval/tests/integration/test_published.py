"""Figures in READMEs are those that are published, and those are what the daemon reaches."""

import codecs
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memconform.bench.answering.arms import CONTROLS
from memconform.conformance.mutation.mutant_table import mutants
from tests.conftest import CHECKOUT, SDKS, Ended, runnable
from tests.integration.test_benchmark_data import LOCOMO, LONGMEMEVAL, real


@pytest.mark.capability("documents")
def test_readme_tables_match_the_published_results() -> None:
    ended = _tables("--check", CHECKOUT)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.count("is up to date") == 30


def _tables(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    script = CHECKOUT / "scripts" / "readme_tables.py"
    command = [sys.executable, script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_detects_a_figure_that_was_edited_by_hand(workspace: Path) -> None:
    docs = ("BENCH", "ANSWERS", "REPLAY", "DIALECTS", "SYSTEMS", "CLIENTS")
    for name in ("README.md", "datasets/README.md", *(f"docs/{name}.md" for name in docs)):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text((CHECKOUT / name).read_text())
    shutil.copytree(CHECKOUT / "results" / "published", workspace / "results" / "published")
    readme = workspace / "datasets" / "README.md"
    published = readme.read_text()
    readme.write_text(published.replace("| 75 of 90 |", "| 85 of 90 |"))
    ended = _tables("--check", workspace)
    assert (ended.returncode, "lme differs" in ended.stderr) == (1, True)
    ended = _tables(workspace)
    assert (ended.returncode, readme.read_text()) == (0, published)
    # As an editor on Windows may save it.
    readme.write_bytes(codecs.BOM_UTF8 + published.replace("\n", "\r\n").encode())
    ended = _tables("--check", workspace)
    assert (ended.returncode, ended.stderr) == (0, "")
    readme.write_bytes(b"\xff" + published.encode())
    ended = _tables(workspace)
    assert (ended.returncode, "is not UTF-8 at byte 0" in ended.stderr) == (2, True)
    readme.write_text(published)
    answers = workspace / "docs" / "ANSWERS.md"
    written = answers.read_text()
    answers.write_text(written.replace("| oracle | 26.0 ", "| oracle | 62.0 "))
    ended = _tables("--check", workspace)
    assert (ended.returncode, "answers differs" in ended.stderr) == (1, True)
    answers.write_text(written)
    readme.write_text(published.replace("<!-- lme: begin -->", ""))
    ended = _tables(workspace)
    assert (ended.returncode, "has no <!-- lme: begin -->" in ended.stderr) == (2, True)


def test_published_results_contain_no_machine_paths() -> None:
    for path in (CHECKOUT / "results" / "published").rglob("*.json"):
        assert not re.search(r"/(home|root|Users)/", path.read_text())
        assert str(CHECKOUT) not in path.read_text()
        assert "/tmp" not in path.read_text()  # noqa: S108 - looked for, not used


_ANSWERS = sorted((CHECKOUT / "results" / "published" / "answers").glob("*.json"))


def _texts(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a document with its key."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from _texts(inner, name)
        case list():
            for inner in value:
                yield from _texts(inner, key)
        case str():
            yield key, value


def _quotable(report: object) -> list[str]:
    """Texts of a report that may be from a benchmark: longer ones than names, ids and digests."""
    return [text for key, text in _texts(report) if key != "why" and text.count(" ") > 1]


@pytest.mark.parametrize("path", _ANSWERS, ids=lambda path: path.stem)
def test_published_answers_are_ids_and_figures_of_a_complete_run(path: Path) -> None:
    report = json.loads(path.read_text())
    assert _quotable(report) == []
    assert [arm["name"] for arm in report["arms"]] == [
        *(f"{sdk} bm25" for sdk in sorted(SDKS)),
        *CONTROLS,
    ]
    assert {arm["measured"] for arm in report["arms"]} == {True}
    views = [arm["views"] for arm in report["arms"]]
    assert views[0] == views[1] == views[2] != views[3]


def test_a_quoted_answer_is_found_in_a_report() -> None:
    assert _ANSWERS
    report = json.loads(_ANSWERS[0].read_text())
    report["arms"][0]["failures"] = ["1 of judge_error, the first q1: She keeps bees"]
    assert len(_quotable(report)) == 1
    assert list(_texts({"a": [{"b": "c"}, "d"]})) == [("b", "c"), ("a", "d")]


@real
def test_published_answers_contain_no_text_of_the_benchmarks() -> None:
    files = [*_ANSWERS, CHECKOUT / "results" / "published" / "replay.json"]
    published = [text for path in files for _, text in _texts(json.loads(path.read_text())) if text]
    questions = [
        *json.loads((LONGMEMEVAL / "longmemeval_oracle.json").read_text()),
        *(row for talk in json.loads(LOCOMO.read_text()) for row in talk["qa"]),
    ]
    own = {str(row[key]) for row in questions for key in ("question", "answer") if key in row}
    # Ids, names and dates of the reports are short; an answer of one number says nothing.
    phrases = {text for text in own if " " in text}
    assert len(phrases) > 1_000
    assert [text for text in published if any(phrase in text for phrase in phrases)] == []


def test_the_published_mutation_score_covers_the_current_mutants() -> None:
    published = json.loads((CHECKOUT / "results" / "published" / "mutation.json").read_text())
    count = Counter(mutant.profile_name for mutant in mutants())
    assert {name: s["total"] for name, s in published["by_profile"].items()} == count
    assert published["killed"] + len(published["survivors"]) == published["total"]
    assert published["false_alarms"] == []


@pytest.mark.parametrize("mode", ["bm25", "semantic", "hybrid"])
def test_the_daemons_reach_the_published_scores(
    memconform: Callable[..., Ended], mode: str
) -> None:
    ended = memconform(
        *("run", "--sdk", "all", "--dataset", "lme", "--corpus", "lme", "--scorer", "exact"),
        *("--mode", mode, "--floor", "0", "--scenario", "search-retrieve-only"),
        *("--json", "report.json", "--quiet"),
    )
    assert ended.code == 0, ended.err
    published = json.loads((CHECKOUT / "results" / "published" / f"lme-{mode}.json").read_text())
    report = json.loads((ended.folder / "report.json").read_text())
    assert sorted(run["sdk"] for run in report["runs"]) == sorted(runnable())
    for run in report["runs"]:
        assert (run["passed"], run["total"]) == (published["passed"], published["total"])
        assert run["provenance"]["dataset_sha256"] == published["dataset_sha256"]
