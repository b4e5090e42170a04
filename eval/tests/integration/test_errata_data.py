"""The shipped errata, held to the public files."""

import os
import runpy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from memconform.bench.plan import BenchmarkScan, scan
from memconform.datasets.benchmarks import Benchmark, open_benchmark
from memconform.datasets.errata import Errata, shipped_errata
from tests.conftest import CHECKOUT

DATA = Path(os.environ.get("MEMCONFORM_DATA", CHECKOUT.parent / "shared" / "data"))
LOCOMO = DATA / "locomo" / "locomo10.json"
ORACLE = DATA / "longmemeval" / "longmemeval_oracle.json"
S = DATA / "longmemeval" / "longmemeval_s_cleaned_499.json.xz"
WMB = DATA / "wmb100k"

real = pytest.mark.skipif(not DATA.is_dir(), reason="the public files are not in $MEMCONFORM_DATA")


def _scan(
    path: Path, errata: Errata, options: Mapping[str, str | None]
) -> tuple[Benchmark, BenchmarkScan]:
    benchmark = open_benchmark(path, None, options)
    corrected = {name: benchmark.items_of(gold) for name, gold in errata.corrected_gold.items()}
    return benchmark, scan(benchmark, corrected)


@real
@pytest.mark.parametrize(
    ("name", "path", "options", "changed"),
    [
        # One of 57 citations is only malformed, and resolves to the right turns. Most right turns
        # are in the cited session.
        ("locomo", LOCOMO, {"level": "turn"}, 56),
        ("locomo", LOCOMO, {"level": "session"}, 13),
        # Turns are evidence by their own mark, which is right.
        ("longmemeval", ORACLE, {"level": "session"}, 1),
        ("longmemeval", ORACLE, {"level": "turn"}, 0),
        ("wmb", WMB, {"part": "B"}, 1),
        ("wmb", WMB, {"part": "A"}, 0),
    ],
)
def test_shipped_errata_fit_the_public_files(
    name: str, path: Path, options: Mapping[str, str | None], changed: int
) -> None:
    errata = shipped_errata(name)
    benchmark, survey = _scan(path, errata, options)
    assert survey.pinned in errata.applies_to
    assert survey.unknown_gold == ()
    assert len(survey.changed_gold) == changed
    known = {*survey.queries, *(entry.id for entry in survey.dropped)}
    if name != "wmb":
        assert errata.entries.keys() <= known
    # What shows a defect is there; S alone has the fillers that are listed twice.
    if name == "wmb":
        [haystack] = benchmark
        items = {item.id for item in haystack.items}
        seen = [
            item
            for query in haystack.queries
            if query.id in errata.entries
            for item in errata.entries[query.id].see
        ]
        assert seen
        assert set(seen) <= items


@real
def test_both_parts_of_wmb_have_every_question_that_its_errata_name() -> None:
    errata = shipped_errata("wmb")
    ids = {
        query.id
        for part in ("A", "B")
        for haystack in open_benchmark(WMB, None, {"part": part})
        for query in haystack.queries
    }
    assert errata.entries.keys() <= ids


@real
def test_the_program_finds_the_defects_of_wmb_that_it_can_prove() -> None:
    program: dict[str, Any] = runpy.run_path(str(CHECKOUT / "scripts" / "wmb_errata.py"))
    listed = {
        name: entry.reason
        for name, entry in shipped_errata("wmb").entries.items()
        if entry.reason in program["PROVEN"]
    }
    assert program["find_defects"](WMB) == listed
    assert len(listed) == 54


@real
@pytest.mark.slow
def test_the_histories_that_list_a_session_twice_are_those_of_the_errata() -> None:
    errata = shipped_errata("longmemeval")
    _, survey = _scan(S, errata, {"level": "session"})
    twice = {entry.id for entry in survey.dropped if "occurs 2 times" in entry.why}
    listed = {n for n, entry in errata.entries.items() if entry.reason == "duplicate session"}
    assert twice == listed
    assert survey.unknown_gold == ()
    assert survey.changed_gold == {"eac54add"}
    # One question is missing, so that it is not the public file.
    assert survey.pinned is None
