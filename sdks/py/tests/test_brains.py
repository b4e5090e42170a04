"""Brains: replacement, isolation, order, and an index that follows the files."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from memoryd.api.bodies import FilterBody
from memoryd.api.search import _filters
from memoryd.brain.draft import Draft
from memoryd.brain.ingest import NewDocument
from memoryd.brain.reconcile import StaleDocument, batches
from memoryd.brain.store import BrainStore
from memoryd.embed.embed import Vector
from memoryd.embed.featurehash import FeatureHash
from memoryd.index.index import Index
from memoryd.problem import Problem
from memoryd.retrieve.plan import Mode, RetrievalRequest
from memoryd.retrieve.retrieve import Retriever

_MODES: tuple[Mode, ...] = ("bm25", "semantic", "hybrid")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[BrainStore]:
    store = BrainStore(tmp_path, FeatureHash())
    yield store
    store.close()


def _new(path: str, text: str, **sidecar: object) -> NewDocument:
    return NewDocument(path, text.encode(), {"contentType": "text/markdown", **sidecar})


def _paths(
    store: BrainStore,
    query: str,
    mode: Mode = "bm25",
    *,
    brain: str = "b",
    filters: dict[str, object] | None = None,
) -> list[str]:
    selected = _filters(FilterBody.model_validate(filters or {}))
    request = RetrievalRequest(query, 100, mode=mode, filters=selected)
    return [chunk.path for chunk in Retriever().retrieve(store.get(brain), request).chunks]


def test_ingesting_a_path_again_replaces_the_document(store: BrainStore) -> None:
    brain = store.create("b", None)
    brain.ingest([_new("a.md", "old zebra")])
    brain.ingest([_new("a.md", "new giraffe"), _new("b.md", "zebra crossing")])
    assert _paths(store, "zebra") == ["b.md"]
    assert _paths(store, "giraffe") == ["a.md"]
    assert brain.counts().documents == 2


def test_two_documents_may_share_a_title(store: BrainStore) -> None:
    brain = store.create("b", None)
    brain.ingest([_new("a.md", "zebra", title="T"), _new("b.md", "zebra", title="T")])
    assert _paths(store, "zebra") == ["a.md", "b.md"]


@pytest.mark.parametrize("mode", _MODES)
def test_ties_are_broken_by_path(store: BrainStore, mode: Mode) -> None:
    paths = ["b.md", "ä.md", "a.md", "Z.md", "a/b.md"]
    store.create("b", None).ingest([_new(path, "the same words") for path in paths])
    assert _paths(store, "same words", mode) == sorted(paths, key=str.encode)


@pytest.mark.parametrize("mode", ["bm25", "semantic"])
def test_the_order_of_ingest_does_not_matter(store: BrainStore, mode: Mode) -> None:
    documents = [_new(f"{n}.md", f"note {n} zebra " + "giraffe " * (n % 5)) for n in range(40)]
    store.create("b", None).ingest(documents)
    other = store.create("c", None)
    for document in reversed(documents):
        other.ingest([document])
    query = "giraffe note zebra"
    assert _paths(store, query, mode) == _paths(store, query, mode, brain="c")


def test_reused_slots_do_not_mix_documents(store: BrainStore) -> None:
    brain = store.create("b", None)
    brain.ingest([_new(f"{n}.md", f"animal{n}") for n in range(5)])
    brain.ingest([_new("2.md", "plant"), _new("9.md", "animal2")])
    for mode in _MODES:
        assert _paths(store, "animal2", mode)[0] == "9.md"
        assert _paths(store, "plant", mode)[0] == "2.md"


@pytest.mark.parametrize("mode", _MODES)
def test_composed_and_decomposed_spellings_rank_alike(store: BrainStore, mode: Mode) -> None:
    store.create("b", None).ingest([_new("a.md", "Caf\u00e9 Zo\u00eb"), _new("b.md", "Bar Zoe")])
    composed = _paths(store, "caf\u00e9 zo\u00eb", mode)
    assert composed == _paths(store, "cafe\u0301 zoe\u0308", mode)
    assert composed[0] == "a.md"


@pytest.mark.parametrize("mode", _MODES)
def test_a_query_without_terms_finds_nothing(store: BrainStore, mode: Mode) -> None:
    store.create("b", None).ingest([_new("a.md", "zebra")])
    assert _paths(store, "? !", mode) == []


def test_a_query_may_have_many_terms(store: BrainStore) -> None:
    store.create("b", None).ingest([_new("a.md", "word255"), _new("b.md", "word256")])
    assert _paths(store, " ".join(f"word{n}" for n in range(400))) == ["a.md"]


def test_query_syntax_has_no_meaning(store: BrainStore) -> None:
    store.create("b", None).ingest([_new("a.md", "zebra"), _new("b.md", "near")])
    assert _paths(store, 'NOT "zebra* AND (') == ["a.md"]


def test_filters(store: BrainStore) -> None:
    store.create("b", None).ingest(
        [
            _new("raw/a.md", "zebra", tags=["x", "y"], metadata={"session_id": "s1"}),
            _new("raw_/b.md", "zebra", tags=["y"]),
            _new("memory/global/c.md", "zebra", metadata={"session_id": "s2"}),
            _new("memory/project/p/d.md", "zebra"),
            _new("memory/project/pq/e.md", "zebra"),
        ]
    )
    expected: list[tuple[dict[str, object], list[str]]] = [
        ({"pathPrefix": "raw"}, ["raw/a.md", "raw_/b.md"]),
        ({"scope": "raw"}, ["raw/a.md"]),
        ({"scope": "global"}, ["memory/global/c.md"]),
        ({"project": "p"}, ["memory/project/p/d.md"]),
        ({"paths": ["raw/a.md", "nowhere"]}, ["raw/a.md"]),
        ({"paths": []}, []),
        ({"tags": ["x", "z"]}, ["raw/a.md"]),
        ({"tags": ["y"], "pathPrefix": "raw/"}, ["raw/a.md"]),
        ({"sessionIds": ["s2", "s1"]}, ["memory/global/c.md", "raw/a.md"]),
        (
            {},
            [
                "memory/global/c.md",
                "memory/project/p/d.md",
                "memory/project/pq/e.md",
                "raw/a.md",
                "raw_/b.md",
            ],
        ),
    ]
    for filters, paths in expected:
        for mode in _MODES:
            assert _paths(store, "zebra", mode, filters=filters) == paths


def test_brains_do_not_leak(store: BrainStore) -> None:
    store.create("b", None).ingest([_new("a.md", "zebra")])
    store.create("c", None).ingest([_new("z.md", "zebra")])
    assert _paths(store, "zebra") == ["a.md"]


def test_a_link_is_not_a_brain(store: BrainStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "brains" / "b").symlink_to(outside)
    assert store.ids() == []
    with pytest.raises(Problem) as caught:
        store.get("b")
    assert caught.value.code == "not_found"


def test_a_recreated_brain_is_empty(store: BrainStore, tmp_path: Path) -> None:
    store.create("b", "first").ingest([_new("a.md", "zebra", title="T")])
    store.delete("b")
    brain = store.create("b", None)
    assert brain.counts().documents == 0
    assert brain.description is None
    assert _paths(store, "zebra") == []
    assert not list((tmp_path / "meta").rglob("*.json"))


def test_deleting_a_brain_does_not_touch_its_neighbours_index(store: BrainStore) -> None:
    store.create("b", None)
    store.create("b.log", None).ingest([_new("a.md", "zebra")])
    store.delete("b")
    store.close()
    assert _paths(store, "zebra", brain="b.log") == ["a.md"]


def test_a_file_and_a_folder_of_the_same_name_conflict(store: BrainStore) -> None:
    brain = store.create("b", None)
    brain.ingest([_new("a", "zebra"), _new("folder/x", "zebra")])
    for documents in (
        [_new("new.md", "giraffe"), _new("a/b", "giraffe")],
        [_new("new.md", "giraffe"), _new("folder", "giraffe")],
        [_new("new.md", "giraffe"), _new("c", "giraffe"), _new("c/d", "giraffe")],
    ):
        with pytest.raises(Problem) as caught:
            brain.ingest(documents)
        assert caught.value.code == "conflict"
    assert _paths(store, "giraffe") == []


def test_a_document_and_its_neighbours_sidecar_conflict(store: BrainStore) -> None:
    brain = store.create("b", None)
    with pytest.raises(Problem):
        brain.ingest([_new("ok.md", "zebra"), _new("a", "zebra"), _new("a.json/x", "zebra")])
    assert _paths(store, "zebra") == []


def test_a_write_that_fails_midway_changes_nothing(
    store: BrainStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = store.create("b", None)
    brain.ingest([_new("a.md", "zebra", title="old")])

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Index, "apply", refuse)
        with pytest.raises(OSError, match="No space"):
            brain.ingest([_new("new/b.md", "giraffe"), _new("a.md", "giraffe", title="new")])
    folder = tmp_path / "brains" / "b"
    # A folder that stayed would make a later document of its name a conflict.
    assert [path.name for path in folder.rglob("*")] == ["a.md"]
    assert (folder / "a.md").read_text() == "zebra"
    assert '"old"' in (tmp_path / "meta" / "b" / "a.md.json").read_text()
    assert not [path for path in (tmp_path / "staging").glob("*/*") if path.is_dir()]
    assert _paths(store, "zebra giraffe") == ["a.md"]


def test_a_change_that_fails_after_its_index_is_not_found(
    store: BrainStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files were restored, and the text that is not there was found."""
    brain = store.create("b", None)
    brain.ingest([_new("a.md", "zebra")])

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr("memoryd.files.journal.Journal.end", refuse)
        with pytest.raises(OSError, match="Input/output"):
            brain.ingest([_new("a.md", "giraffe"), _new("b.md", "giraffe")])
    assert _paths(store, "giraffe") == []
    assert _paths(store, "zebra") == ["a.md"]
    assert brain.counts().documents == 1


def test_a_document_may_be_removed_by_hand_while_it_is_replaced(
    store: BrainStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain, link = store.create("b", None), os.link
    brain.ingest([_new("a.md", "zebra")])

    def remove_first(source: object, target: object, **more: bool) -> None:
        if str(source).endswith("/a.md"):
            (tmp_path / "brains" / "b" / "a.md").unlink(missing_ok=True)
        link(source, target, **more)  # type: ignore[arg-type]

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("os.link", remove_first)
        brain.ingest([_new("a.md", "giraffe")])
    assert _paths(store, "giraffe zebra") == ["a.md"]


def test_the_indexes_of_a_former_version_are_removed(tmp_path: Path) -> None:
    """They hold the text of documents, also of brains that are deleted."""
    folder = tmp_path / "index" / "py"
    folder.mkdir(parents=True)
    for name in ("b.sqlite", "b.sqlite-wal", "gone.sqlite"):
        (folder / name).write_text("zebra")
    store = BrainStore(tmp_path, None)
    store.create("x.sqlite", None).ingest([_new("a.md", "zebra")])
    store.close()
    BrainStore(tmp_path, None).close()
    assert sorted(path.name for path in folder.glob("*.sqlite*")) == [
        "x.sqlite.lock",
        "x.sqlite.log",
    ]


def test_a_former_index_that_cannot_be_removed_does_not_stop_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "index" / "py" / "b.sqlite" / "in the way").mkdir(parents=True)
    BrainStore(tmp_path, None).close()
    assert "cannot remove an index of a former version" in caplog.text


def test_a_batch_that_fails_midway_is_undone(
    store: BrainStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = store.create("b", None)
    brain.ingest([_new("a", "zebra", title="A"), _new("d/b", "giraffe"), _new("d/c", "lion")])

    def state() -> dict[str, bytes | None]:
        return {
            str(path.relative_to(tmp_path)): path.read_bytes() if path.is_file() else None
            for folder in ("brains", "meta", "staging")
            for path in (tmp_path / folder).rglob("*")
        }

    def stage(draft: Draft) -> None:
        draft.rename("a", "a/b")
        draft.delete("d/b")
        draft.write("d/c", b"changed")
        draft.rename("d/c", "d/new/c")
        draft.write("d/b/new", b"elephant")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = state()
    with monkeypatch.context() as broken:
        broken.setattr(Index, "apply", refuse)
        with pytest.raises(OSError, match="No space"):
            brain.change(stage)
    assert state() == before
    assert _paths(store, "zebra giraffe lion elephant") == ["a", "d/b", "d/c"]
    brain.change(stage)
    assert _paths(store, "zebra changed elephant") == ["a/b", "d/b/new", "d/new/c"]
    assert not [path for path in (tmp_path / "staging").glob("*/*") if path.is_dir()]


def test_a_damaged_index_is_rebuilt_from_the_files(tmp_path: Path) -> None:
    store = BrainStore(tmp_path, FeatureHash())
    store.create("b", None).ingest([_new("a.md", "zebra")])
    store.close()
    (tmp_path / "index" / "py" / "b.log").write_bytes(b"no log at all" * 999)
    again = BrainStore(tmp_path, FeatureHash())
    assert _paths(again, "zebra") == ["a.md"]
    again.close()


def test_only_what_is_damaged_is_indexed_again(tmp_path: Path) -> None:
    embedded: list[str] = []

    class Counting(FeatureHash):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            embedded.extend(texts)
            return super().embed(texts)

    store = BrainStore(tmp_path, Counting())
    texts = [f"zebra{n} waits" for n in range(30)]
    store.create("b", None).ingest([_new(f"{n}.md", text) for n, text in enumerate(texts)])
    store.close()
    assert embedded == texts
    file = tmp_path / "index" / "py" / "b.log"
    file.write_bytes(file.read_bytes().replace(b"zebra7 ", b"zobra7 "))
    for expected in (texts[7:8], []):
        embedded.clear()
        store = BrainStore(tmp_path, Counting())
        assert _paths(store, "zebra7 zobra7") == ["7.md"]
        assert store.get("b").counts().vectors == 30
        assert embedded == expected
        store.close()


def test_the_index_follows_the_files(tmp_path: Path) -> None:
    store = BrainStore(tmp_path, FeatureHash())
    store.create("b", None).ingest([_new(f"{n}.md", f"zebra{n}", tags=["t"]) for n in range(3)])
    store.close()
    folder = tmp_path / "brains" / "b"
    (folder / "0.md").unlink()
    (folder / "1.md").write_text("---\ntitle: New\ntags: [u]\n---\ngiraffe")
    (folder / "sub").mkdir()
    (folder / "sub" / "new.md").write_text("---\nkind: note\n---\nelephant")
    (folder / "_hidden.md").write_text("elephant")
    again = BrainStore(tmp_path, FeatureHash())
    assert _paths(again, "zebra0 zebra1 zebra2") == ["2.md"]
    assert _paths(again, "giraffe") == ["1.md"]
    assert _paths(again, "elephant") == ["sub/new.md"]
    assert _paths(again, "note title") == []
    [found] = (
        Retriever().retrieve(again.get("b"), RetrievalRequest("elephant", 1, mode="bm25")).chunks
    )
    assert found.metadata == {"kind": "note"}
    assert found.text == "elephant"
    again.close()


def test_a_file_with_an_invalid_name_is_ignored(tmp_path: Path) -> None:
    store = BrainStore(tmp_path, None)
    store.create("b", None).ingest([_new("a.md", "zebra")])
    store.close()
    for name in ("x" * 252, "back\\slash"):
        (tmp_path / "brains" / "b" / name).write_text("zebra")
    again = BrainStore(tmp_path, None)
    assert _paths(again, "zebra") == ["a.md"]
    again.close()


def test_batches_are_limited_in_documents_and_bytes() -> None:
    stale = [StaleDocument("a", "", 1)] * 300 + [StaleDocument("b", "", 2**20)] * 3
    assert [len(batch) for batch in batches(stale)] == [256, 44, 1, 1, 1]


def test_an_index_of_another_embedder_is_rebuilt(tmp_path: Path) -> None:
    without = BrainStore(tmp_path, None)
    without.create("b", None).ingest([_new("a.md", "zebra")])
    assert without.get("b").counts().vectors == 0
    without.close()
    store = BrainStore(tmp_path, FeatureHash())
    assert store.get("b").counts().vectors == 1
    assert _paths(store, "zebra", "semantic") == ["a.md"]
    store.close()


def test_a_second_daemon_builds_an_index_of_its_own(store: BrainStore, tmp_path: Path) -> None:
    store.create("b", None).ingest([_new("a.md", "zebra")])
    second = BrainStore(tmp_path, FeatureHash())
    assert _paths(second, "zebra") == ["a.md"]
    second.close()
    assert _paths(store, "zebra") == ["a.md"]


def test_a_failed_embedding_stores_nothing(tmp_path: Path) -> None:
    class Broken(FeatureHash):
        def embed(self, texts: Sequence[str]) -> list[Vector]:  # noqa: ARG002 - it refuses all
            raise Problem("bad_gateway", "no embedder")

    store = BrainStore(tmp_path, Broken())
    brain = store.create("b", None)
    with pytest.raises(Problem):
        brain.ingest([_new("a.md", "zebra")])
    assert brain.counts().documents == 0
    assert not list((tmp_path / "brains" / "b").iterdir())
    store.close()


def test_binary_documents_are_stored_but_not_indexed(store: BrainStore) -> None:
    brain = store.create("b", None)
    indexed = brain.ingest([NewDocument("a.bin", b"\xff\xfe", {"contentType": "x/y"})])
    assert indexed["a.bin"].chunks == []
    assert brain.counts().chunks == 0


def test_without_an_embedder_the_trace_reports_the_fallback(tmp_path: Path) -> None:
    store = BrainStore(tmp_path, None)
    store.create("b", None).ingest([_new("a.md", "zebra")])
    seen: dict[Mode, tuple[object, object]] = {}
    for mode in ("auto", "bm25", "semantic", "hybrid", "hybrid-rerank"):
        trace = Retriever().retrieve(store.get("b"), RetrievalRequest("zebra", 5, mode=mode)).trace
        seen[mode] = (trace.effective_mode, trace.fell_back_to_bm25)
    assert seen == {
        "auto": ("bm25", False),
        "bm25": ("bm25", False),
        "semantic": ("bm25", True),
        "hybrid": ("bm25", True),
        "hybrid-rerank": ("bm25", True),
    }
    store.close()


@pytest.mark.parametrize(("model", "effective"), [("fh256-1", "bm25"), ("other", "hybrid")])
def test_auto_is_bm25_with_the_feature_hash_and_hybrid_with_another_model(
    tmp_path: Path, model: str, effective: str
) -> None:
    embedder = FeatureHash()
    embedder.model = model
    store = BrainStore(tmp_path, embedder)
    brain = store.create("b", None)
    brain.ingest([_new("a.md", "zebra")])
    trace = Retriever().retrieve(brain, RetrievalRequest("zebra", 5, mode="auto")).trace
    assert (trace.effective_mode, trace.embedder_used) == (effective, effective == "hybrid")
    assert not trace.fell_back_to_bm25
    store.close()
