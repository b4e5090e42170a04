"""The texts of a haystack are dropped once they are ingested."""

import gc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from memconform.bench.document_map import DocumentMap
from memconform.bench.plan import BenchPlan, scan
from memconform.bench.schedule import _batches
from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.haystacks import Item
from tests.unit.wmb_files import questions, write_benchmark


def _items() -> int:
    gc.collect()
    return sum(type(each) is Item for each in gc.get_objects())


def test_no_item_is_held_while_its_questions_are_asked(tmp_path: Path) -> None:
    folder = write_benchmark(tmp_path / "wmb", questions())
    benchmark = open_benchmark(folder, "wmb", {"part": "both"})
    before = _items()
    fields: dict[str, Any] = {
        "benchmark": benchmark,
        "scan": scan(benchmark),
        "positions": {},
        "settings": SimpleNamespace(index="isolated"),
        "planner": SimpleNamespace(tasks=lambda haystack: list(haystack.queries)),
    }
    plan = BenchPlan(suite="wmb", systems=(), seed=0, **fields)
    assert _items() == before
    counts = []
    for _, haystacks, tasks in _batches(plan):
        documents = DocumentMap(haystacks)
        paths = [document.path for document in documents.documents()]
        counts.append((len(paths), len(tasks)))
        assert _items() == before
    assert counts == [(2, 28), (40, 64)]
