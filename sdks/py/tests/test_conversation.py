"""A ranking of conversations in an index that changes; test_vectors.py has the formula."""

import random
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memoryd.brain.ingest import NewDocument
from memoryd.brain.store import BrainStore
from memoryd.embed.embed import Vector
from memoryd.embed.featurehash import FeatureHash
from memoryd.index.filter import Filters
from memoryd.index.index import Index, IndexedDocument
from memoryd.index.sessions import SessionChunk, Sessions
from memoryd.retrieve.plan import RetrievalRequest
from memoryd.retrieve.retrieve import Retriever

_NO_FILTERS = Filters()

Row = tuple[str, int, float]


def _document(path: str, *chunks: str, vectors: list[Vector] | None = None, **metadata: Any) -> Any:
    return IndexedDocument(path, "s", None, [], metadata, list(chunks), vectors)


def _found(
    index: Index, query: str, vector: Vector | None = None, filters: Filters = _NO_FILTERS
) -> list[Row]:
    hits = index.conversation(query, vector, filters, 1000)
    return [(index.chunk(h.slot).path, index.chunk(h.slot).ordinal, h.score) for h in hits]


def _vector(*values: float) -> Vector:
    vector = np.array(values, dtype=np.float32)
    return vector / np.float32(np.linalg.norm(vector))


def test_a_term_reaches_four_turns_and_not_another_session() -> None:
    index = Index(None, None)
    index.apply(
        [_document(f"{n:02}.md", "nothing said", session_id="s", index=n) for n in range(9)]
    )
    index.apply([_document("09.md", "heron waited", session_id="s", index=9)])
    index.apply([_document("10.md", "nothing said", session_id="t", index=10)])
    assert [path for path, _, _ in _found(index, "heron")] == [f"0{n}.md" for n in range(9, 4, -1)]


@pytest.mark.parametrize("vectors", [False, True])
def test_changes_leave_what_a_new_index_finds(vectors: bool) -> None:  # noqa: FBT001
    chance = random.Random(3)
    index, documents = Index(None, None), dict[str, Any]()
    query = _vector(1, 2, 3) if vectors else None
    for _ in range(120):
        path = f"{chance.randrange(30):02}.md"
        chunks = [" ".join(chance.choices(["heron", "lamp?", "sings"], k=3)) for _ in range(2)]
        ended = chance.random() < 0.2
        document = _document(
            path,
            *chunks,
            vectors=[_vector(*chance.choices([1, 2, -3], k=3)) for _ in chunks]
            if vectors
            else None,
            session_id=chance.choice(["s", "t", ""]),
            index=chance.choice([None, 1, 2.5, "3"]),
            speaker=chance.choice(["Ana", "Ana Lamp", None]),
        )
        index.apply([] if ended else [document], [path] if ended else [])
        documents.pop(path, None)
        if not ended:
            documents[path] = document
        fresh = Index(None, None)
        fresh.apply(list(documents.values()))
        assert index.has_turns == fresh.has_turns
        assert index.has_turns == any(d.metadata["session_id"] for d in documents.values())
        assert _found(index, "heron lamp ana", query) == _found(fresh, "heron lamp ana", query)


def test_a_filter_changes_no_score() -> None:
    index, vector = Index(None, None), _vector(1, 2)
    turns = [
        _document(f"{n}.md", f"heron {n}", vectors=[_vector(n, 1)], session_id="s", index=n)
        for n in range(1, 7)
    ]
    index.apply(turns)
    complete = _found(index, "heron", vector)
    few = _found(index, "heron", vector, Filters(paths=["2.md", "5.md"]))
    assert few == [row for row in complete if row[0] in ("2.md", "5.md")]
    assert len(few) == 2
    assert min(score for _, _, score in complete) < 0


def test_an_empty_index_has_no_conversation() -> None:
    assert _found(Index(None, None), "heron", _vector(1)) == []


def test_turns_that_go_while_the_query_is_embedded_decide_the_mode(tmp_path: Path) -> None:
    """Notes were ranked as a conversation, under its name."""

    class Forgetting(FeatureHash):
        model = "other"

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if "heron?" in texts and brain.counts().documents == 1:
                brain.ingest([NewDocument("a.md", b"A heron waits.", {})])
            return super().embed(texts)

    store = BrainStore(tmp_path, Forgetting())
    brain = store.create("b", None)
    turn = {"metadata": {"session_id": "s"}}
    brain.ingest([NewDocument("a.md", b"The kettle sings.", turn)])
    retrieved = Retriever().retrieve(brain, RetrievalRequest("heron?", 5, mode="conversation"))
    assert (retrieved.trace.effective_mode, retrieved.trace.embedder_used) == ("hybrid", True)
    assert [chunk.text for chunk in retrieved.chunks] == ["A heron waits."]
    store.close()


def test_searches_share_the_order_of_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    index = Index(None, None)
    index.apply([_document("a.md", "heron", session_id="s")])
    made, second_searches = list[int](), threading.Event()

    def build(chunks: Iterable[SessionChunk]) -> Sessions:
        made.append(1)
        assert second_searches.wait(60)
        return Sessions(chunks)

    def second() -> list[Row]:
        second_searches.set()
        return _found(index, "heron")

    monkeypatch.setattr("memoryd.index.index.Sessions", build)
    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(_found, index, "heron"), threads.submit(second)]
        assert [len(each.result()) for each in both] == [1, 1]
    assert len(made) == 1
