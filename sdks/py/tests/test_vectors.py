"""The test vectors that every SDK must reproduce."""

import json
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from pydantic.alias_generators import to_snake

from memoryd.chunk import chunk
from memoryd.embed.featurehash import FeatureHash, fnv1a
from memoryd.index.chunk import Chunk, notes_of
from memoryd.index.sessions import SessionChunk, Sessions, Turn
from memoryd.prompt.answer import cited, read_scores
from memoryd.prompt.prompt import READER_SYSTEM, RERANK_SYSTEM, user_message
from memoryd.rank.dates import Recency, Temporal, by_date, document_date
from memoryd.rank.fuse import fuse_minmax, fuse_reciprocal
from memoryd.rank.rank import Hit, inverse_l2, round_score
from memoryd.reader.fake import extract
from memoryd.text.stop_words import STOP_WORDS, keywords
from memoryd.text.terms import query_terms, terms
from memoryd.text.tokens import tokens

T = TypeVar("T")

_FOLDER = Path(__file__).parents[2] / "vectors"


def _vectors(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def _of(kind: type[T], values: dict[str, Any] | None) -> T | None:
    """The instance whose fields have these values, under their names in JSON."""
    if values is None:
        return None
    return kind(**{to_snake(key): value for key, value in values.items()})


@pytest.mark.parametrize("case", _vectors("terms")["cases"], ids=lambda case: case["text"])
def test_terms(case: dict[str, Any]) -> None:
    assert terms(case["text"]) == case["terms"]


@pytest.mark.parametrize("case", _vectors("tokens")["cases"], ids=lambda case: case["text"])
def test_tokens(case: dict[str, Any]) -> None:
    assert [token.decode() for token in tokens(case["text"])] == case["tokens"]


@pytest.mark.parametrize("case", _vectors("chunking")["cases"], ids=str)
def test_chunking(case: dict[str, Any]) -> None:
    text = "".join(piece * times for piece, times in case["text"])
    chunks = chunk(text)
    assert [len(piece.encode()) for piece in chunks] == case["bytes"]
    assert "".join(chunks) == text


@pytest.mark.parametrize("case", _vectors("hash")["fnv1a32"], ids=lambda case: case["text"])
def test_fnv1a(case: dict[str, Any]) -> None:
    assert fnv1a(case["text"].encode()) == case["hash"]


@pytest.mark.parametrize("case", _vectors("hash")["cases"], ids=lambda case: case["text"][:20])
def test_feature_hash(case: dict[str, Any]) -> None:
    [vector] = FeatureHash().embed([case["text"]])
    values = {str(i): float(x) for i, x in enumerate(vector) if x}
    assert values == case["values"]


@pytest.mark.parametrize("case", _vectors("fusion")["rounding"], ids=str)
def test_rounding(case: dict[str, Any]) -> None:
    assert round_score(case["score"]) == case["rounded"]


@pytest.mark.parametrize("case", _vectors("fusion")["kernel"], ids=str)
def test_inverse_l2(case: dict[str, Any]) -> None:
    assert inverse_l2(case["cosine"]) == case["inverse-l2"]


def _session_chunks(case: dict[str, Any]) -> list[SessionChunk]:
    return [
        SessionChunk.of(_turn(chunk["metadata"]), chunk["path"], slot, chunk["text"])
        for slot, chunk in enumerate(case["chunks"])
    ]


def _turn(metadata: dict[str, Any]) -> Turn | None:
    session = metadata.get("session_id")
    return Turn.of(session if isinstance(session, str) else None, json.dumps(metadata))


@pytest.mark.parametrize("case", _vectors("conversation")["cases"], ids=lambda case: case["name"])
def test_conversation(case: dict[str, Any]) -> None:
    if case["expected"] is None:
        assert all(_turn(chunk["metadata"]) is None for chunk in case["chunks"])
        return
    sessions, asked = Sessions(_session_chunks(case)), query_terms(case["query"])
    counted = keywords(asked)
    assert counted == case["terms"]
    of_term = {row["term"]: np.array(row["scores"], np.float64) for row in case["bm25"]}
    found = [(np.flatnonzero(of_term[term]), of_term[term]) for term in counted]
    words = sessions.turns.words((sessions.places(slots), all_[slots]) for slots, all_ in found)
    cosines = case.get("cosines")
    vectors = None if cosines is None else sessions.turns.vectors(np.array(cosines)[sessions.slots])
    scores = sessions.turns.scores(words, vectors, sessions.named(asked)).tolist()
    ranked = [
        (-round_score(score), chunk["path"], chunk["ordinal"])
        for slot, score, some in zip(sessions.slots.tolist(), scores, words > 0, strict=True)
        for chunk in [case["chunks"][slot]]
        if some or cosines is not None
    ]
    expected = case["expected"]
    assert [row[1:] for row in sorted(ranked)] == [(c["path"], c["ordinal"]) for c in expected]
    assert [-row[0] for row in sorted(ranked)] == pytest.approx(
        [chunk["score"] for chunk in expected], abs=1e-6
    )


@pytest.mark.parametrize("case", _vectors("dates")["moments"], ids=str)
def test_moments(case: dict[str, Any]) -> None:
    assert document_date({"date": case["text"]}) == case["seconds"]


@pytest.mark.parametrize("metadata", [{}, {"date": None}, {"date": 2024}, {"date": ["2024-01-01"]}])
def test_a_date_is_a_string(metadata: dict[str, Any]) -> None:
    assert document_date(metadata) is None


@pytest.mark.parametrize("case", _vectors("dates")["cases"], ids=str)
def test_scores_by_date(case: dict[str, Any]) -> None:
    recency, temporal = case["recency"], case["temporal"]
    scored = by_date(
        [Hit(slot, score) for slot, (score, _) in enumerate(case["hits"])],
        lambda slot: document_date({"date": case["hits"][slot][1]}),
        _of(Recency, recency),
        _of(Temporal, temporal),
    )
    assert scored == [Hit(slot, score) for slot, score in enumerate(case["scores"])]


@pytest.mark.parametrize("case", _vectors("fusion")["cases"], ids=str)
def test_fusion(case: dict[str, Any]) -> None:
    names = sorted({name for leg in ("keyword", "vector") for name, _ in case[leg]})
    keyword, vector = (
        [Hit(names.index(name), score) for name, score in case[leg]]
        for leg in ("keyword", "vector")
    )
    fused = (
        fuse_reciprocal(keyword, vector, case["k"])
        if case["fusion"] == "rrf"
        else fuse_minmax(keyword, vector, case["alpha"])
    )
    ordered = sorted(fused, key=lambda hit: (-hit.score, hit.slot))
    assert [[names[hit.slot], hit.score] for hit in ordered] == case["fused"]


@pytest.mark.parametrize("case", _vectors("prompt")["cases"], ids=lambda c: c["question"])
def test_prompt(case: dict[str, Any]) -> None:
    chunks = [
        Chunk(c["path"], 0, 0.0, c["text"], c.get("title"), json.dumps(c.get("metadata", {})))
        for c in case["chunks"]
    ]
    message = user_message(
        case["question"], notes_of(chunks), case.get("questionDate"), case["readerMode"]
    )
    assert message == case["user"]


def test_system_prompts() -> None:
    vectors = _vectors("prompt")
    assert vectors["system"] == READER_SYSTEM
    assert vectors["rerankSystem"] == RERANK_SYSTEM


@pytest.mark.parametrize("case", _vectors("prompt")["citations"], ids=lambda c: c["answer"])
def test_citations(case: dict[str, Any]) -> None:
    assert cited(case["answer"], case["notes"]) == case["cited"]


@pytest.mark.parametrize("case", _vectors("prompt")["replies"], ids=lambda c: c["reply"])
def test_rerank_replies(case: dict[str, Any]) -> None:
    assert read_scores(case["reply"], case["documents"]) == case["scores"]


def test_stop_words() -> None:
    assert sorted(STOP_WORDS) == _vectors("reader")["stop_words"]


@pytest.mark.parametrize("case", _vectors("reader")["cases"], ids=str)
def test_reader(case: dict[str, Any]) -> None:
    answer = extract(case["question"], case["chunks"])
    assert (answer.text, answer.source) == (case["answer"], case["source"])
    assert answer.deltas == case["deltas"]
