"""Cached vectors are read back unchanged, or not at all."""

import sqlite3
import subprocess
import sys
import threading
from array import array
from pathlib import Path

import pytest

from memconform.errors import UsageError
from memconform.upstream.vectorcache import VectorCache, cache_file
from memconform.user_cache import use_write_ahead_log

_LAMP = array("f", [0.6, 0.8])
_KILN = array("f", [1.0, 0.0])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _rows(sql: str, *values: object) -> None:
    with sqlite3.connect(cache_file()) as db:
        db.execute(sql, values)
    db.close()


def test_vectors_are_read_back_bit_by_bit() -> None:
    VectorCache("m", 2).write({"lamp": _LAMP, "kiln": _KILN})
    vectors = VectorCache("m", 2).read(["kiln", "mule", "lamp"])
    assert {text: vector.tobytes() for text, vector in vectors.items()} == {
        "lamp": _LAMP.tobytes(),
        "kiln": _KILN.tobytes(),
    }


def test_vectors_of_another_model_are_not_used() -> None:
    VectorCache("m", 2).write({"lamp": _LAMP})
    assert VectorCache("n", 2).read(["lamp"]) == {}


def test_file_defaults_to_the_user_s_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MEMCONFORM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert cache_file() == tmp_path / "memconform" / "embeddings.sqlite3"


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET vector = substr(vector, 1, 4)",
        "UPDATE vectors SET vector = x'0000000000000000'",
        "UPDATE vectors SET crc = crc + 1",
        # Another text's vector, whole: what a damaged index of SQLite's may lead to.
        "UPDATE vectors SET (vector, crc) = (SELECT vector, crc FROM vectors WHERE rowid = 3)",
    ],
)
def test_damaged_vector_is_ignored(damage: str) -> None:
    VectorCache("m", 2).write({"lamp": _LAMP, "kiln": _KILN, "mule": _KILN})
    _rows(damage)
    assert VectorCache("m", 2).read(["lamp", "kiln"]) == {}


def test_vector_with_non_finite_numbers_is_ignored() -> None:
    cache = VectorCache("m", 2)
    cache.write({"lamp": array("f", [float("nan"), 0.0]), "kiln": _KILN})
    assert list(cache.read(["lamp", "kiln"])) == ["kiln"]


def test_damaged_file_is_moved_aside_and_replaced(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    cache_file().write_bytes(b"no database " * 400)
    cache = VectorCache("m", 2)
    assert cache.read(["lamp"]) == {}
    assert "moved aside" in capsys.readouterr().out
    cache.write({"lamp": _LAMP})
    assert VectorCache("m", 2).read(["lamp"]) == {"lamp": _LAMP}
    [aside] = folder.glob("*.damaged-*")
    assert aside.read_bytes().startswith(b"no database ")


def test_database_with_damaged_pages_is_moved_aside(folder: Path) -> None:
    cache = VectorCache("m", 2)
    cache.write({str(n): _LAMP for n in range(2_000)})
    assert cache._db is not None
    cache._db.close()
    content = cache_file().read_bytes()
    # The first page, which says that this is a database, stays.
    cache_file().write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    other = VectorCache("m", 2)
    assert other.read(["0"]) == {}
    other.write({"0": _KILN})
    assert VectorCache("m", 2).read(["0"]) == {"0": _KILN}
    assert list(folder.glob("*.damaged-*"))


def test_file_replaced_by_another_process_is_left_alone(folder: Path) -> None:
    mine, other = VectorCache("m", 2), VectorCache("m", 2)
    mine.write({"lamp": _LAMP})
    for part in folder.iterdir():
        part.rename(part.with_name(f"aside-{part.name}"))
    other.write({"kiln": _KILN})
    mine._move_aside(sqlite3.DatabaseError("malformed"))
    assert mine.read(["kiln"]) == {"kiln": _KILN}
    assert not list(folder.glob("*.damaged-*"))


def test_error_names_a_folder_that_cannot_be_created(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(UsageError, match="embeddings") as raised:
        VectorCache("m", 2).read(["lamp"])
    assert raised.value.code == "cache_unusable"
    assert "MEMCONFORM_CACHE" in raised.value.hint


def test_file_with_other_tables_is_refused_and_not_moved(folder: Path) -> None:
    folder.mkdir()
    _rows("CREATE TABLE vectors (name TEXT)")
    with pytest.raises(UsageError, match="no such column"):
        VectorCache("m", 2).read(["lamp"])
    assert not list(folder.glob("*.damaged-*"))


_WRITER = """
import sys
import threading
from array import array
from memconform.upstream.vectorcache import VectorCache
cache = VectorCache("m", 2)
for n in range(50):
    cache.write({f"{sys.argv[1]} {n}": array("f", [n, float(sys.argv[1])])})
"""


def test_several_processes_share_the_file() -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(number)]) for number in range(3)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0]
    texts = [f"{number} {n}" for number in range(3) for n in range(50)]
    assert list(VectorCache("m", 2).read(texts)) == texts


def test_a_database_that_another_process_locks_is_waited_for(tmp_path: Path) -> None:
    """SQLite itself does not wait when it changes the journal mode, and a writer ended."""
    file = tmp_path / "shared.sqlite3"
    holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    holder.execute("CREATE TABLE t (x)")
    holder.execute("BEGIN EXCLUSIVE")
    waiting = sqlite3.connect(file, timeout=0, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        use_write_ahead_log(waiting, 0.05)
    threading.Timer(0.2, lambda: holder.execute("COMMIT")).start()
    use_write_ahead_log(waiting, 30)
    assert waiting.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for db in (holder, waiting):
        db.close()
