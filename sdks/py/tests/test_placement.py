"""Interrupted changes: no document is lost, whatever the moment."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest

from memoryd.brain.ingest import NewDocument
from memoryd.brain.store import BrainStore
from memoryd.files.placement import place_files
from memoryd.files.staging import Staging
from memoryd.files.tree import Document, Tree
from memoryd.index.filter import Filters
from memoryd.problem import Problem

_SOURCES = Path(__file__).parents[1] / "src"

_BEFORE = {"a": "zebra", "b": "giraffe", "c": "lion", "d/e": "hyena"}

_KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from memoryd.brain.store import BrainStore

brain = BrainStore(Path(sys.argv[1]), None).get("b")
brain.open()
calls = itertools.count(1)

def killing(move):
    def moved(*arguments, **options):
        if next(calls) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return move(*arguments, **options)
    return moved

Path.rename, Path.replace, Path.unlink = map(killing, (Path.rename, Path.replace, Path.unlink))
os.link = killing(os.link)

def stage(draft):
    draft.rename("a", "x")
    draft.rename("b", "a")
    draft.rename("x", "b")
    draft.rename("c", "c/below")
    draft.rename("d/e", "d2/e")

brain.change(stage)
"""


def _store(home: Path) -> BrainStore:
    store = BrainStore(home, None)
    documents = [
        NewDocument(path, text.encode(), {"contentType": "text/plain", "title": text})
        for path, text in _BEFORE.items()
    ]
    store.create("b", None).ingest(documents)
    return store


def _documents(home: Path) -> dict[str, str]:
    tree = Tree(home / "brains" / "b", home / "meta" / "b")
    found = {path: (tree.documents.read(path) or b"").decode() for path, _ in tree.walk()}
    for path, text in found.items():
        assert f'"{text}"' in (tree.sidecar(path) or b"").decode()
    return found


def test_the_next_start_undoes_a_kill_at_any_step(tmp_path: Path) -> None:
    kills = 0
    for step in range(1, 60):
        home = tmp_path / str(step)
        _store(home).close()
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, home, str(step)],
            env={"PYTHONPATH": str(_SOURCES)},
            check=False,
        )
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        kills += 1
        store = BrainStore(home, None)
        assert _documents(home) == _BEFORE
        assert store.get("b").counts().documents == len(_BEFORE)
        store.close()
    assert kills > 10
    after = {"b": "zebra", "a": "giraffe", "c/below": "lion", "d2/e": "hyena"}
    assert _documents(home) == after


def _changes_left(home: Path) -> list[Path]:
    """The folders of changes in staging."""
    return [path for path in (home / "staging").glob("*/*") if path.is_dir()]


def _fail_change(home: Path, then: Callable[[], None]) -> None:
    """Swap `a` and `b`, call `then`, and fail."""
    staging = Staging(home)
    tree = Tree(home / "brains" / "b", home / "meta" / "b")
    after = {"a": Document(b"giraffe", None), "b": Document(b"zebra", None), "c": None}
    try:
        with place_files(tree, staging, after):
            then()
            raise OSError(28, "No space left on device")
    finally:
        staging.close()


def test_a_running_change_is_not_undone_by_another_daemon(tmp_path: Path) -> None:
    store = _store(tmp_path)

    def second() -> None:
        BrainStore(tmp_path, None).close()
        assert (tmp_path / "brains" / "b" / "a").read_text() == "giraffe"

    with pytest.raises(OSError, match="No space"):
        _fail_change(tmp_path, second)
    assert _documents(tmp_path) == _BEFORE
    store.close()


def test_a_failed_undo_continues_and_is_retried_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _store(tmp_path).close()
    folder = tmp_path / "brains" / "b"
    rename = Path.rename

    def fail_for_b(self: Path, target: Path) -> Path:
        if target == folder / "b":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
        _fail_change(tmp_path, lambda: broken.setattr(Path, "rename", fail_for_b))
    assert ((folder / "a").read_text(), (folder / "c").read_text()) == ("zebra", "lion")
    assert "cannot undo 'brains/b/b'" in caplog.text
    assert len(_changes_left(tmp_path)) == 1
    BrainStore(tmp_path, None).close()
    assert _documents(tmp_path) == _BEFORE
    assert not _changes_left(tmp_path)


def test_later_writes_are_not_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(tmp_path).close()
    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
        _fail_change(
            tmp_path, lambda: broken.setattr("memoryd.files.placement.undo", lambda *_: False)
        )
    new = tmp_path / "new"
    new.write_text("elephant")
    new.replace(tmp_path / "brains" / "b" / "a")
    BrainStore(tmp_path, None).close()
    assert (tmp_path / "brains" / "b" / "a").read_text() == "elephant"
    assert (tmp_path / "brains" / "b" / "b").read_text() == "giraffe"
    assert (tmp_path / "brains" / "b" / "c").read_text() == "lion"


def test_a_full_disk_leaves_neither_files_nor_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _store(tmp_path)
    brain = store.get("b")

    def fill_the_disk(log: FileIO, content: bytes) -> None:
        log.write(content[:-1])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("memoryd.index.log.write_whole", fill_the_disk)
        for path in ("new", "a"):
            with pytest.raises(OSError, match="No space"):
                brain.ingest([NewDocument(path, b"elephant", {"contentType": "text/plain"})])
    assert _documents(tmp_path) == _BEFORE
    assert brain.counts().documents == len(_BEFORE)
    assert brain.query_index(lambda index: index.keyword("elephant", Filters(), 9)) == []
    brain.ingest([NewDocument("new", b"elephant", {"contentType": "text/plain"})])
    assert len(brain.query_index(lambda index: index.keyword("elephant", Filters(), 9))) == 1
    assert not _changes_left(tmp_path)
    store.close()


def test_a_brain_that_does_not_open_does_not_stop_the_others(tmp_path: Path) -> None:
    _store(tmp_path).close()
    BrainStore(tmp_path, None).create("broken", None)
    index = tmp_path / "index" / "py" / "broken.log"
    index.unlink(missing_ok=True)
    index.mkdir()
    store = BrainStore(tmp_path, None)
    store.open_all()
    assert store.get("b").counts().documents == len(_BEFORE)
    with pytest.raises(Problem) as caught:
        store.get("broken").counts()
    assert caught.value.code == "internal_error"
    assert "'broken'" in caught.value.detail
    index.rmdir()
    assert store.get("broken").counts().documents == 0
    store.close()


def test_a_brain_that_was_removed_by_hand_is_gone(tmp_path: Path) -> None:
    store = _store(tmp_path)
    store.get("b").open()
    shutil.rmtree(tmp_path / "brains" / "b")
    with pytest.raises(Problem) as caught:
        store.get("b")
    assert caught.value.code == "not_found"
    assert not (tmp_path / "index" / "py" / "b.log").exists()
    assert store.create("b", None).counts().documents == 0
    assert not list((tmp_path / "meta").rglob("*.json"))
    store.close()
