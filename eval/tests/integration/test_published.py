"""Figures in READMEs are those that are published, and those are what the daemon reaches."""

import codecs
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from memconform.conformance.mutation.mutants import mutants
from tests.conftest import CHECKOUT, Ended, runnable


def test_readme_tables_match_the_published_results(
    installed: Callable[..., Ended],
) -> None:
    ended = installed("report", "tables", "--check", CHECKOUT)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.count("is up to date") == 7


def test_detects_a_figure_that_was_edited_by_hand(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    for name in ("README.md", "datasets/README.md", "docs/BENCH.md"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text((CHECKOUT / name).read_text())
    shutil.copytree(CHECKOUT / "results" / "published", workspace / "results" / "published")
    readme = workspace / "datasets" / "README.md"
    published = readme.read_text()
    readme.write_text(published.replace("| 75 of 90 |", "| 85 of 90 |"))
    ended = memconform("report", "tables", "--check")
    assert (ended.code, "lme differs" in ended.err) == (1, True)
    ended = memconform("report", "tables")
    assert (ended.code, readme.read_text()) == (0, published)
    # As an editor on Windows may save it.
    readme.write_bytes(codecs.BOM_UTF8 + published.replace("\n", "\r\n").encode())
    ended = memconform("report", "tables", "--check")
    assert (ended.code, ended.err) == (0, "")
    readme.write_bytes(b"\xff" + published.encode())
    ended = memconform("report", "tables")
    assert (ended.code, "is not UTF-8 at byte 0" in ended.err) == (2, True)
    readme.write_text(published.replace("<!-- lme: begin -->", ""))
    ended = memconform("report", "tables")
    assert (ended.code, "has no <!-- lme: begin -->" in ended.err) == (2, True)


def test_published_results_contain_no_machine_paths() -> None:
    for path in (CHECKOUT / "results" / "published").rglob("*.json"):
        assert str(Path.home()) not in path.read_text()
        assert str(CHECKOUT) not in path.read_text()
        assert "/tmp" not in path.read_text()  # noqa: S108 - looked for, not used


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
