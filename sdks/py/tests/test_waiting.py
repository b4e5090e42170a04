"""Concurrency: a slow embedder delays its own request and no other."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memoryd.brain.brain import Brain
from memoryd.brain.ingest import NewDocument
from memoryd.brain.store import BrainStore
from memoryd.embed.embed import Vector
from memoryd.embed.featurehash import FeatureHash
from memoryd.files.lock import SharedLock
from memoryd.problem import Problem
from memoryd.retrieve.plan import RetrievalRequest
from memoryd.retrieve.retrieve import Retriever

_WAIT_SECONDS = 60
"""For what takes a moment, and for ever where it is broken."""


class _Slow(FeatureHash):
    """Blocks before it embeds a text with the word `slow`, until it is released."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.go = threading.Event()

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        if any("slow" in text for text in texts):
            self.called.set()
            assert self.go.wait(_WAIT_SECONDS)
        return super().embed(texts)


@pytest.fixture
def embedder() -> _Slow:
    return _Slow()


@pytest.fixture
def store(tmp_path: Path, embedder: _Slow) -> Iterator[BrainStore]:
    store = BrainStore(tmp_path, embedder)
    yield store
    store.close()


@pytest.fixture
def brain(store: BrainStore) -> Brain:
    return store.create("b", None)


def _write(brain: Brain, path: str, content: bytes) -> None:
    brain.change(lambda draft: draft.write(path, content))


def _append(brain: Brain, path: str, content: bytes) -> None:
    brain.change(lambda draft: draft.append(path, content))


def _read(brain: Brain, path: str) -> bytes | None:
    return brain.read_files(lambda tree: tree.documents.read(path))


def test_requests_do_not_wait_for_the_embeddings_of_others(brain: Brain, embedder: _Slow) -> None:
    _write(brain, "a", b"zebra")
    writing = threading.Thread(target=_write, args=(brain, "b", b"slow"))
    writing.start()
    assert embedder.called.wait(_WAIT_SECONDS)
    assert (_read(brain, "a"), _read(brain, "b")) == (b"zebra", None)
    found = Retriever().retrieve(brain, RetrievalRequest("zebra", 5, mode="hybrid"))
    assert len(found.chunks) == 1
    _write(brain, "c", b"giraffe")
    assert writing.is_alive()
    embedder.go.set()
    writing.join(_WAIT_SECONDS)
    assert _read(brain, "b") == b"slow"


def test_an_append_applies_to_a_concurrent_write(brain: Brain, embedder: _Slow) -> None:
    writing = threading.Thread(target=_append, args=(brain, "a", b"slow"))
    writing.start()
    assert embedder.called.wait(_WAIT_SECONDS)
    _write(brain, "a", b"zebra ")
    embedder.go.set()
    writing.join(_WAIT_SECONDS)
    assert _read(brain, "a") == b"zebra slow"
    found = Retriever().retrieve(brain, RetrievalRequest("zebra slow", 5, mode="bm25"))
    assert [chunk.text for chunk in found.chunks] == ["zebra slow"]


def test_concurrent_appends_lose_nothing(brain: Brain) -> None:
    threads = [
        threading.Thread(target=_append, args=(brain, "a", f"word{number} ".encode()))
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_WAIT_SECONDS)
    assert sorted((_read(brain, "a") or b"").split()) == sorted(
        f"word{number}".encode() for number in range(16)
    )
    assert brain.counts().documents == 1


def test_files_can_be_read_before_the_index_is_reconciled(tmp_path: Path, embedder: _Slow) -> None:
    without = BrainStore(tmp_path, None)
    without.create("b", None).ingest([NewDocument("a", b"slow", {})])
    without.close()
    store = BrainStore(tmp_path, embedder)
    brain = store.get("b")
    opening = threading.Thread(target=brain.open)
    opening.start()
    assert embedder.called.wait(_WAIT_SECONDS)
    assert _read(brain, "a") == b"slow"
    assert opening.is_alive()
    embedder.go.set()
    opening.join(_WAIT_SECONDS)
    assert brain.counts().vectors == 1
    store.close()


def test_a_brain_can_be_deleted_during_a_call_to_the_embedder(
    store: BrainStore, brain: Brain, embedder: _Slow
) -> None:
    refused: list[str] = []

    def write() -> None:
        try:
            _write(brain, "a", b"slow")
        except Problem as problem:
            refused.append(problem.code)

    writing = threading.Thread(target=write)
    writing.start()
    assert embedder.called.wait(_WAIT_SECONDS)
    store.delete("b")
    anew = store.create("b", None)
    embedder.go.set()
    writing.join(_WAIT_SECONDS)
    assert refused == ["not_found"]
    assert _read(anew, "a") is None


def test_readers_share_and_a_waiting_writer_goes_before_later_readers() -> None:
    lock, order = SharedLock(), []
    reading, release = threading.Event(), threading.Event()

    def first() -> None:
        with lock.shared():
            reading.set()
            release.wait(_WAIT_SECONDS)

    def write() -> None:
        with lock.exclusive():
            order.append("writer")

    def late() -> None:
        with lock.shared():
            order.append("reader")

    threads = [threading.Thread(target=first)]
    threads[0].start()
    assert reading.wait(_WAIT_SECONDS)
    with lock.shared():
        order.append("beside")
    for target in (write, late):
        threads.append(threading.Thread(target=target))
        threads[-1].start()
        while target is write and not lock._writers_waiting:
            pass
    release.set()
    for thread in threads:
        thread.join(_WAIT_SECONDS)
    assert order == ["beside", "writer", "reader"]


@pytest.mark.parametrize("in_memory", [False, True])
def test_searches_of_one_brain_do_not_wait_for_each_other(
    store: BrainStore, tmp_path: Path, *, in_memory: bool
) -> None:
    # A second store has its index in memory, because the first one owns the file.
    brain = store.create("b", None)
    brain.ingest([NewDocument("a", b"zebra heron", {})])
    other = BrainStore(tmp_path, FeatureHash()) if in_memory else None
    searched = other.get("b") if other is not None else brain
    inside, leave = threading.Event(), threading.Event()

    def linger(_: object) -> None:
        inside.set()
        assert leave.wait(_WAIT_SECONDS)

    slow = threading.Thread(target=searched.query_index, args=(linger,))
    slow.start()
    assert inside.wait(_WAIT_SECONDS)
    found: list[int] = []

    def search() -> None:
        request = RetrievalRequest("zebra", 5, mode="hybrid")
        found.append(len(Retriever().retrieve(searched, request).chunks))

    threads = [threading.Thread(target=search) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_WAIT_SECONDS)
    assert found == [1] * 8
    writing = threading.Thread(target=_write, args=(searched, "b", b"otter"))
    writing.start()
    # short limit: a write that waits does so for as long as the search lasts
    writing.join(0.1)
    assert writing.is_alive(), "nothing is written while a search reads the index"
    leave.set()
    slow.join(_WAIT_SECONDS)
    writing.join(_WAIT_SECONDS)
    assert searched.counts().documents == 2
    if other is not None:
        other.close()
