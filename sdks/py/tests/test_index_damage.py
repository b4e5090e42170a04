"""Damage anywhere in the file of an index is noticed, and repaired from what is intact."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from memoryd.brain.ingest import NewDocument
from memoryd.brain.store import BrainStore
from memoryd.embed.embed import Vector
from memoryd.embed.featurehash import FeatureHash
from memoryd.retrieve.plan import Mode, RetrievalRequest
from memoryd.retrieve.retrieve import Retriever

_PAGE = 4096
_MODES: tuple[Mode, ...] = ("bm25", "semantic", "hybrid")


class _Counting(FeatureHash):
    def __init__(self) -> None:
        self.texts = 0

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += len(texts)
        return super().embed(texts)


def _documents(number: int) -> Iterator[NewDocument]:
    for n in range(number):
        text = f"---\ntitle: Note {n}\n---\nzebra{n} waits " + "with a giraffe " * (n % 5)
        yield NewDocument(f"d/{n}.md", text.encode(), {"contentType": "a", "tags": [f"t{n % 3}"]})


def _results(store: BrainStore) -> list[Any]:
    found: list[Any] = []
    for mode in _MODES:
        for query in ("zebra3 giraffe", "waits"):
            request = RetrievalRequest(query, 100, mode=mode)
            found += Retriever().retrieve(store.get("b"), request).chunks
    return [store.get("b").counts(), *found]


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Path, list[Any]]:
    """A state folder whose daemon was stopped, and what its searches found."""
    store = BrainStore(tmp_path, FeatureHash())
    store.create("b", None).ingest([*_documents(30)])
    results = _results(store)
    store.close()
    return tmp_path / "index" / "py" / "b.sqlite", results


def _reopened(file: Path, embedder: FeatureHash | None = None) -> list[Any]:
    store = BrainStore(file.parents[2], embedder or FeatureHash())
    results = _results(store)
    store.close()
    return results


def test_an_index_that_was_closed_is_trusted(filled: tuple[Path, list[Any]]) -> None:
    file, results = filled
    embedder = _Counting()
    assert _reopened(file, embedder) == results
    assert embedder.texts == 6 - 2  # only the queries: bm25 needs no vector


def test_an_index_that_was_not_closed_keeps_its_vectors(filled: tuple[Path, list[Any]]) -> None:
    file, results = filled
    Path(f"{file}.seal").unlink()
    embedder = _Counting()
    assert _reopened(file, embedder) == results
    assert embedder.texts == 4


@pytest.mark.parametrize("sealed", [True, False])
def test_damage_to_any_page_of_an_index_is_repaired(
    filled: tuple[Path, list[Any]], *, sealed: bool
) -> None:
    """Without the seal too, where only what the daemon reads can show the damage."""
    file, results = filled
    whole = file.read_bytes()
    seal = Path(f"{file}.seal").read_bytes()
    damages: list[Callable[[bytes], bytes]] = [
        lambda _page: b"\xde\xad\xbe\xef" * (_PAGE // 4),
        lambda _page: bytes(_PAGE),
        lambda page: page.replace(b"waits", b"wafts").replace(b"zebra", b"zobra"),
        lambda page: page[:-9] + bytes([page[-9] ^ 1]) + page[-8:],
    ]
    for number, start in enumerate(range(0, len(whole), _PAGE)):
        damage = damages[number % len(damages)]
        page = damage(whole[start : start + _PAGE])
        file.write_bytes(whole[:start] + page + whole[start + _PAGE :])
        Path(f"{file}.seal").write_bytes(seal if sealed else b"")
        assert _reopened(file) == results, f"page {number}"


def test_a_letter_that_changed_in_a_text_is_noticed(filled: tuple[Path, list[Any]]) -> None:
    file, results = filled
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"waits", b"wafts"))
    Path(f"{file}.seal").unlink()
    assert _reopened(file) == results


@pytest.mark.parametrize("length", [0, 1, 100, _PAGE, 3 * _PAGE + 17])
def test_a_truncated_index_is_repaired(filled: tuple[Path, list[Any]], length: int) -> None:
    file, results = filled
    file.write_bytes(file.read_bytes()[:length])
    assert _reopened(file) == results


def test_the_index_of_another_brain_is_replaced(filled: tuple[Path, list[Any]]) -> None:
    file, results = filled
    store = BrainStore(file.parents[2], FeatureHash())
    store.create("c", None).ingest([NewDocument("d/1.md", b"another zebra1", {})])
    store.close()
    for suffix in ("", ".seal"):
        shutil.copyfile(f"{file.with_name('c.sqlite')}{suffix}", f"{file}{suffix}")
    assert _reopened(file) == results


def test_damage_that_a_search_meets_is_repaired(filled: tuple[Path, list[Any]]) -> None:
    file, results = filled
    store = BrainStore(file.parents[2], FeatureHash())
    store.get("b").counts()
    with sqlite3.connect(file) as other:
        other.execute("UPDATE chunk_terms_data SET block = x'ff' WHERE id > 10")
    other.close()
    assert _results(store) == results
    store.close()
