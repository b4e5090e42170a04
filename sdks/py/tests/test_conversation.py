"""A ranking of conversations in an index that changes; test_vectors.py has the formula."""

import random
from typing import Any

import numpy as np
import pytest

from memoryd.embed.embed import Vector
from memoryd.index.filter import Filters
from memoryd.index.index import Index, IndexedDocument

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


def test_the_last_turn_may_go_before_the_search() -> None:
    assert _found(Index(None, None), "heron", _vector(1)) == []
