"""The oracle reproduces the contract's test vectors, as every daemon must."""

import json
from hashlib import sha256
from typing import Any

import pytest

from memconform.contract.chunking import cut
from memconform.contract.terms import terms
from memconform.oracle import conversation, fusion, reader
from memconform.oracle.dates import seconds
from memconform.oracle.front_matter import Indexed
from memconform.oracle.stop_words import STOP_WORDS
from memconform.oracle.store import Chunk
from memconform.oracle.vectors import DIMENSIONS, cosine, embed, fnv1a
from tests.conftest import CHECKOUT


def _vectors(name: str) -> dict[str, Any]:
    path = CHECKOUT / "sdks" / "vectors" / f"{name}.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def _ids(value: object) -> str:
    return sha256(repr(value).encode()).hexdigest()[:8]


@pytest.mark.parametrize("case", _vectors("terms")["cases"], ids=_ids)
def test_terms(case: dict[str, Any]) -> None:
    assert terms(case["text"]) == case["terms"]


@pytest.mark.parametrize("case", _vectors("chunking")["cases"], ids=_ids)
def test_chunking(case: dict[str, Any]) -> None:
    text = "".join(piece * times for piece, times in case["text"]).encode()
    chunks = cut(text)
    assert [len(chunk) for chunk in chunks] == case["bytes"]
    assert b"".join(chunks) == text


@pytest.mark.parametrize("case", _vectors("hash")["fnv1a32"], ids=_ids)
def test_fnv1a(case: dict[str, Any]) -> None:
    assert fnv1a(case["text"].encode()) == case["hash"]


@pytest.mark.parametrize("case", _vectors("hash")["cases"], ids=_ids)
def test_feature_hash(case: dict[str, Any]) -> None:
    vector = embed(case["text"])
    assert vector == {int(index): value for index, value in case["values"].items()}
    assert all(0 <= index < DIMENSIONS for index in vector)
    if vector:
        assert cosine(vector, vector) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("case", _vectors("fusion")["rounding"], ids=_ids)
def test_rounding(case: dict[str, Any]) -> None:
    assert fusion.rounded(case["score"]) == case["rounded"]


@pytest.mark.parametrize("case", _vectors("fusion")["kernel"], ids=_ids)
def test_kernel(case: dict[str, Any]) -> None:
    assert fusion.inverse_l2(case["cosine"]) == case["inverse-l2"]


@pytest.mark.parametrize("case", _vectors("fusion")["cases"], ids=_ids)
def test_fusion(case: dict[str, Any]) -> None:
    if case["fusion"] == "rrf":
        legs = [[name for name, _ in case[leg]] for leg in ("keyword", "vector")]
        fused = fusion.rrf(legs[0], legs[1], case["k"])
    else:
        fused = fusion.minmax(dict(case["keyword"]), dict(case["vector"]), case["alpha"])
    ordered = sorted(fused.items(), key=lambda item: (-item[1], item[0]))
    assert [list(item) for item in ordered] == case["fused"]


@pytest.mark.parametrize("case", _vectors("dates")["moments"], ids=_ids)
def test_dates(case: dict[str, Any]) -> None:
    assert seconds(case["text"]) == case["seconds"]


@pytest.mark.parametrize("case", _vectors("dates")["cases"], ids=_ids)
def test_recency_and_temporal(case: dict[str, Any]) -> None:
    hits = dict(enumerate(score for score, _ in case["hits"]))
    dates = {n: None if d is None else seconds(d) for n, (_, d) in enumerate(case["hits"])}
    scores = fusion.dated(hits, dates, case.get("recency"), case.get("temporal"))
    assert list(scores.values()) == case["scores"]


@pytest.mark.parametrize("case", _vectors("reader")["cases"], ids=_ids)
def test_fake_reader(case: dict[str, Any]) -> None:
    answer = reader.read(case["question"], case["chunks"])
    assert (answer.text, answer.source) == (case["answer"], case["source"])
    assert answer.deltas == case["deltas"]


def test_stop_words() -> None:
    assert sorted(STOP_WORDS) == _vectors("reader")["stop_words"]


@pytest.mark.parametrize(
    "case",
    [
        c
        for c in _vectors("conversation")["cases"]
        if "cosines" not in c and c["expected"] is not None
    ],
    ids=lambda case: case["name"],
)
def test_conversation(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {row["term"]: row["scores"] for row in case["bm25"]}
    monkeypatch.setattr(
        conversation, "bm25", lambda term, _: {n: s for n, s in enumerate(scores[term]) if s}
    )
    chunks = [
        Chunk(c["path"], c["ordinal"], c["text"], Indexed((), None, (), c["metadata"]))
        for c in case["chunks"]
    ]
    found = conversation.conversation(case["query"], chunks)
    ranked = sorted((-fusion.rounded(score), *chunks[n].key) for n, score in found.items())
    expected = [(c["path"].encode(), c["ordinal"]) for c in case["expected"]]
    assert [row[1:] for row in ranked] == expected
    assert [-row[0] for row in ranked] == pytest.approx(
        [c["score"] for c in case["expected"]], abs=1e-6
    )
