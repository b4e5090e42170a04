"""Interrupted commits: no document is lost, whatever the moment."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.brain import NewDocument
from memoryd.brains import BrainStore
from memoryd.commit import commit_files
from memoryd.draft import Document
from memoryd.tree import Tree

_SOURCES = Path(__file__).parents[1] / "src"

_BEFORE = {"a": "zebra", "b": "giraffe", "c": "lion", "d/e": "hyena"}

_KILLED = """
import itertools, os, signal, sys
from pathlib import Path
from memoryd.brains import BrainStore

brain = BrainStore(Path(sys.argv[1]), None).get("b")
brain.open()
calls = itertools.count(1)

def killing(move):
    def moved(*arguments):
        if next(calls) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return move(*arguments)
    return moved

Path.rename, Path.replace, Path.unlink = map(killing, (Path.rename, Path.replace, Path.unlink))

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
    for step in range(1, 30):
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


def _fail_commit(home: Path, then: Callable[[], None]) -> None:
    """Swap `a` and `b`, call `then`, and fail."""
    tree = Tree(home / "brains" / "b", home / "meta" / "b")
    after = {"a": Document(b"giraffe", None), "b": Document(b"zebra", None), "c": None}
    with commit_files(tree, home / "staging", after):
        then()
        raise OSError(28, "No space left on device")


def test_a_running_commit_is_not_undone_by_another_daemon(tmp_path: Path) -> None:
    store = _store(tmp_path)

    def second() -> None:
        BrainStore(tmp_path, None).close()
        assert (tmp_path / "brains" / "b" / "a").read_text() == "giraffe"

    with pytest.raises(OSError, match="No space"):
        _fail_commit(tmp_path, second)
    assert _documents(tmp_path) == _BEFORE
    store.close()


def test_a_failed_undo_continues_and_is_retried_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _store(tmp_path).close()
    folder = tmp_path / "brains" / "b"
    replace = Path.replace

    def fail_for_b(self: Path, target: Path) -> Path:
        if target == folder / "b":
            raise OSError(5, "Input/output error")
        return replace(self, target)

    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
        _fail_commit(tmp_path, lambda: broken.setattr(Path, "replace", fail_for_b))
    assert ((folder / "a").read_text(), (folder / "c").read_text()) == ("zebra", "lion")
    assert "cannot undo 'brains/b/b'" in caplog.text
    assert len(list((tmp_path / "staging").iterdir())) == 1
    BrainStore(tmp_path, None).close()
    assert _documents(tmp_path) == _BEFORE
    assert not list((tmp_path / "staging").iterdir())


def test_later_writes_are_not_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(tmp_path).close()
    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
        _fail_commit(tmp_path, lambda: broken.setattr("memoryd.journal._undo", lambda *_: False))
    new = tmp_path / "new"
    new.write_text("elephant")
    new.replace(tmp_path / "brains" / "b" / "a")
    BrainStore(tmp_path, None).close()
    assert (tmp_path / "brains" / "b" / "a").read_text() == "elephant"
    assert (tmp_path / "brains" / "b" / "b").read_text() == "giraffe"
    assert (tmp_path / "brains" / "b" / "c").read_text() == "lion"
