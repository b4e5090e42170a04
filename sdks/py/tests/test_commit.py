"""Commits that were cut short: whatever the moment, no document is lost by it."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memoryd.brain import NewDocument
from memoryd.brains import BrainStore
from memoryd.commit import committed
from memoryd.staged import Document
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

def dying(move):
    def moved(*given):
        if next(calls) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)
        return move(*given)
    return moved

Path.rename, Path.replace, Path.unlink = map(dying, (Path.rename, Path.replace, Path.unlink))

def stage(staged):
    staged.rename("a", "x")
    staged.rename("b", "a")
    staged.rename("x", "b")
    staged.rename("c", "c/below")
    staged.rename("d/e", "d2/e")

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


def test_a_kill_at_any_step_is_taken_back_at_the_next_start(tmp_path: Path) -> None:
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


def _cut(home: Path, then: Callable[[], None]) -> None:
    """Exchanges `a` and `b` and fails, `then` having been called first."""
    tree = Tree(home / "brains" / "b", home / "meta" / "b")
    after = {"a": Document(b"giraffe", None), "b": Document(b"zebra", None), "c": None}
    with committed(tree, home / "staging", after):
        then()
        raise OSError(28, "No space left on device")


def test_who_lives_is_not_taken_back(tmp_path: Path) -> None:
    store = _store(tmp_path)

    def second() -> None:
        BrainStore(tmp_path, None).close()
        assert (tmp_path / "brains" / "b" / "a").read_text() == "giraffe"

    with pytest.raises(OSError, match="No space"):
        _cut(tmp_path, second)
    assert _documents(tmp_path) == _BEFORE
    store.close()


def test_an_undo_that_fails_does_the_rest_and_is_done_at_the_next_start(
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
        _cut(tmp_path, lambda: broken.setattr(Path, "replace", fail_for_b))
    assert ((folder / "a").read_text(), (folder / "c").read_text()) == ("zebra", "lion")
    assert "cannot take back 'brains/b/b'" in caplog.text
    assert len(list((tmp_path / "staging").iterdir())) == 1
    BrainStore(tmp_path, None).close()
    assert _documents(tmp_path) == _BEFORE
    assert not list((tmp_path / "staging").iterdir())


def test_what_was_written_since_is_let_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _store(tmp_path).close()
    with monkeypatch.context() as broken, pytest.raises(OSError, match="No space"):
        _cut(tmp_path, lambda: broken.setattr("memoryd.journal._undo", lambda *_: False))
    new = tmp_path / "new"
    new.write_text("elephant")
    new.replace(tmp_path / "brains" / "b" / "a")
    BrainStore(tmp_path, None).close()
    assert (tmp_path / "brains" / "b" / "a").read_text() == "elephant"
    assert (tmp_path / "brains" / "b" / "b").read_text() == "giraffe"
    assert (tmp_path / "brains" / "b" / "c").read_text() == "lion"
