"""Figures in READMEs are those that are published, and those are what the daemon reaches."""

import importlib.util
import json
from collections import Counter
from collections.abc import Callable

import pytest

from memconform.conformance.mutation.mutants import mutants
from tests.conftest import CHECKOUT, Ended, runnable

_spec = importlib.util.spec_from_file_location("publish", CHECKOUT / "scripts" / "publish.py")
assert _spec is not None
assert _spec.loader is not None
publish = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(publish)


def test_the_table_is_made_from_what_is_published() -> None:
    assert publish.table(publish.published()) in (CHECKOUT / "datasets" / "README.md").read_text()


def test_the_mutation_score_is_the_published_one() -> None:
    assert publish.published_mutation_table() in (CHECKOUT / "README.md").read_text()


def test_the_published_mutation_score_is_of_the_mutants_that_there_are() -> None:
    published = json.loads((CHECKOUT / "results" / "published" / "mutation.json").read_text())
    count = Counter(mutant.profile_name for mutant in mutants())
    assert {name: s["total"] for name, s in published["by_profile"].items()} == count
    assert published["killed"] + len(published["survivors"]) == published["total"]
    assert published["false_alarms"] == []


@pytest.mark.parametrize("mode", ["bm25", "semantic", "hybrid"])
def test_the_daemons_reach_what_is_published(memconform: Callable[..., Ended], mode: str) -> None:
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
