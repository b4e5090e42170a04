"""`memconform datasets` on benchmarks: small ones, and the public files where they lie."""

import json
import lzma
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from memconform.datasets.benchmarks import open_benchmark
from memconform.datasets.haystacks import Haystack
from memconform.stats.paired_comparison import Counts, compare_pairs
from tests.conftest import CHECKOUT, Ended

DATA = Path(os.environ.get("MEMCONFORM_DATA", CHECKOUT.parent / "shared" / "data"))
LOCOMO = DATA / "locomo" / "locomo10.json"
LONGMEMEVAL = DATA / "longmemeval"
WMB = DATA / "wmb100k"

real = pytest.mark.skipif(not DATA.is_dir(), reason="the public files are not in $MEMCONFORM_DATA")


def _info(memconform: Callable[..., Ended], path: Path, *options: str) -> dict[str, Any]:
    ended = memconform("datasets", "info", path, *options, "--json", "-")
    assert ended.code == 0, ended.err
    loaded: dict[str, Any] = json.loads(ended.out)
    return loaded


def _counts(info: dict[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(info[name] for name in names)


@real
@pytest.mark.parametrize(
    ("level", "items", "queries", "unavoidable"),
    [("turn", 5_882, 1_982, 1), ("session", 272, 1_981, 0)],
)
def test_locomo_counts(
    memconform: Callable[..., Ended],
    level: str,
    items: int,
    queries: int,
    unavoidable: int,
) -> None:
    info = _info(memconform, LOCOMO, "--level", level)
    assert _counts(info, "haystacks", "items", "queries", "unavoidable") == (
        *(10, items, queries),
        unavoidable,
    )
    assert info["categories"]["open-domain"] == 92
    assert info["abstain"] == info["categories"]["adversarial"] == 446
    assert info["sha256"] == "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4"
    # Three evidence ids name no turn; four questions, and at session level one more, name none.
    assert len(info["dropped"]) == 7 + (level == "session")


@real
def test_locomo_drift_by_query_is_no_drift_by_conversation() -> None:
    """Keyword search over sessions, once with short words and once without."""
    alone, clustered = Counts(same=False), Counts(same=False)
    for haystack in open_benchmark(LOCOMO, None, {"level": "session"}):
        found = [_found(haystack, pattern) for pattern in ("[a-z0-9]{2,}", "[a-z0-9]{4,}")]
        for first, second in zip(*found, strict=True):
            alone.add(first=first, second=second)
            clustered.add(first=first, second=second, cluster=haystack.id)
    [by_query], [by_conversation] = compare_pairs([alone]), compare_pairs([clustered])
    assert (by_query.verdict, by_conversation.verdict) == ("drift", "inconclusive")
    assert (by_query.compared, by_conversation.clusters) == (1_981, 10)
    assert by_conversation.mid_p == by_query.holm_p == pytest.approx(0.048, abs=0.001)
    assert by_conversation.sign_flip_p == pytest.approx(0.094, abs=0.001)


def _found(haystack: Haystack, pattern: str) -> list[bool]:
    """Whether BM25 ranks gold among the first five, for each query that has gold."""

    def words(text: str) -> list[str]:
        return re.findall(pattern, text.lower())

    index = BM25Okapi([words(item.text) for item in haystack.items])
    found = []
    for query in haystack.queries:
        if query.gold:
            best = np.argsort(-index.get_scores(words(query.question)), kind="stable")[:5]
            found.append(any(haystack.items[place].id in query.gold for place in best))
    return found


@real
def test_longmemeval_oracle_counts(memconform: Callable[..., Ended]) -> None:
    info = _info(memconform, LONGMEMEVAL / "longmemeval_oracle.json")
    assert _counts(info, "haystacks", "queries", "scored", "abstain") == (500, 500, 419, 30)
    assert info["sha256"] == "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c"


@real
@pytest.mark.slow
def test_longmemeval_s_counts(memconform: Callable[..., Ended], workspace: Path) -> None:
    packed = LONGMEMEVAL / "longmemeval_s_cleaned_499.json.xz"
    info = _info(memconform, packed)
    # Of 23,806 sessions 13 stand in their haystack twice.
    assert _counts(info, "haystacks", "scored", "items") == (499, 418, 23_793)
    plain = workspace / "s.json"
    with lzma.open(packed) as file:
        plain.write_bytes(file.read())
    assert _info(memconform, plain)["sha256"] == info["sha256"]


@real
@pytest.mark.parametrize(("part", "items", "queries"), [("A", 10, 1_200), ("B", 105_591, 1_508)])
def test_wmb_counts(memconform: Callable[..., Ended], part: str, items: int, queries: int) -> None:
    info = _info(memconform, WMB, "--part", part)
    assert _counts(info, "haystacks", "items", "queries", "unavoidable") == (1, items, queries, 0)
    assert info["abstain"] == 200
    assert info["dropped"] == []


@real
def test_wmb_by_category_has_the_gold_of_each_question_in_its_category() -> None:
    benchmark = open_benchmark(WMB, "wmb", {"part": "B"})
    [whole] = benchmark
    benchmark.split_by_category()
    categories = list(benchmark)
    assert len(categories) == 10
    assert sum(len(category.items) for category in categories) == len(whole.items) == 105_591
    assert sum(len(category.queries) for category in categories) == len(whole.queries) == 1_508
    for category in categories:
        items = {item.id for item in category.items}
        assert all(items.issuperset(query.gold) for query in category.queries)
    across = [q for c in categories for q in c.queries if q.category == "S3CrossCategory"]
    assert (len(across), any(query.gold for query in across)) == (90, False)


@real
def test_locomo_converts_to_memini_s_json_and_keeps_its_counts(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    ended = memconform("datasets", "convert", LOCOMO, "-o", "m.json")
    assert ended.code == 0, ended.err
    one, two = _info(memconform, LOCOMO), _info(memconform, workspace / "m.json")
    same = ("haystacks", "items", "queries", "unavoidable", "categories")
    assert [two[name] for name in same] == [one[name] for name in same]


def test_a_question_set_of_the_project_is_a_benchmark(memconform: Callable[..., Ended]) -> None:
    info = _info(memconform, CHECKOUT / "datasets" / "lme.jsonl")
    assert _counts(info, "haystacks", "items", "queries", "with_gold") == (1, 212, 100, 90)
    assert _counts(info, "unavoidable", "abstain", "dropped") == (0, 10, [])
    assert info["categories"]["temporal"] == 14


def test_formats_are_listed_with_their_options(memconform: Callable[..., Ended]) -> None:
    listing = memconform("datasets", "list").out
    for word in ("smoke", "lme", "locomo", "longmemeval", "wmb", "memini", "--level turn|session"):
        assert word in listing


def test_dropped_entries_are_listed_on_demand(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    path = workspace / "m.json"
    item = {"id": "a", "content": "A"}
    path.write_text(json.dumps({"items": [item], "questions": [{"query": "q", "gold": ["z"]}]}))
    plain = memconform("datasets", "info", path).out
    assert "1 with gold, 1 unavoidable miss among them" in plain
    assert "1 dropped or unresolved: --verbose lists them" in plain
    assert "  #0: no item 'z'" in memconform("datasets", "info", path, "--verbose").out


@pytest.mark.parametrize("verb", ["info", "convert"])
def test_a_truncated_file_is_reported_with_its_byte_and_nothing_is_written(
    memconform: Callable[..., Ended], workspace: Path, verb: str
) -> None:
    path = workspace / "cut.json"
    path.write_text('[{"question_id": "q1", "haystack_sess')
    target = workspace / "out.json"
    more = ["-o", target] if verb == "convert" else []
    ended = memconform("datasets", verb, path, "--format", "longmemeval", *more)
    assert ended.code == 2
    assert "cut.json: ends too early, at byte 23" in ended.err
    assert not target.exists()


def test_nothing_is_replaced_by_a_conversion(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    path = workspace / "m.json"
    item = {"id": "a", "content": "A"}
    content = json.dumps({"items": [item], "questions": [{"query": "q", "gold": ["a"]}]})
    path.write_text(content)
    for target in ("m.json", "nowhere/m.json", "", "m.json.gz"):
        assert memconform("datasets", "convert", path, "-o", target).code == 2
    assert path.read_text() == content
    ended = memconform("datasets", "convert", path, "-o", "/dev/null")
    assert ended.code == 0, ended.err
    assert Path("/dev/null").is_char_device()
    converted = json.loads(memconform("datasets", "convert", path, "-o", "-").out)
    assert [entry["id"] for entry in converted["items"]] == ["all/a"]


def test_info_json_matches_its_schema(memconform: Callable[..., Ended], workspace: Path) -> None:
    path = workspace / "m.json"
    item = {"id": "a", "content": "A"}
    path.write_text(json.dumps({"items": [item], "questions": [{"query": "q", "gold": ["z"]}]}))
    schema = json.loads(memconform("datasets", "info", "--schema").out)
    jsonschema.validate(_info(memconform, path), schema)
    assert schema["properties"]["dropped"]["items"]
