"""The log of an index: damage costs what it touches, a failed write nothing; waste is dropped."""

from collections.abc import Iterator
from dataclasses import replace
from io import FileIO
from pathlib import Path

import pytest

from memoryd.embed.featurehash import FeatureHash
from memoryd.index.filter import Filters
from memoryd.index.index import LEAST_WASTE, LEAST_WASTED_BYTES, Counts, Index, IndexedDocument
from memoryd.index.log import MARK

_PAGE = 4096
_EMBEDDER = FeatureHash()


def _words(number: int) -> str:
    """Words that no other document has; few of them share a bucket of the feature hash."""
    return f"zebra{number} heron{7 * number} waits{13 * number}"


def _document(path: str, *chunks: str) -> IndexedDocument:
    return IndexedDocument(
        path=path,
        stamp=f"of {path}",
        title="T",
        tags=["x"],
        metadata={"session_id": "s"},
        chunks=list(chunks),
        vectors=_EMBEDDER.embed(chunks),
    )


def _open(file: Path, embedder: str | None = _EMBEDDER.name) -> Index:
    return Index(file, embedder)


def _keyword(index: Index, query: str) -> list[str]:
    return [index.chunk(hit.slot).path for hit in index.keyword(query, Filters(), 9)]


def _nearest(index: Index, query: str) -> str:
    [vector] = _EMBEDDER.embed([query])
    [hit] = index.semantic(vector, Filters(), 1)
    return index.chunk(hit.slot).path


def _require_sound(file: Path) -> int:
    """Open the index, and check that each of its documents is found by its own words and vectors.

    Returns:
        How many there are.
    """
    index = _open(file)
    paths = index.stamps()
    assert index.counts() == Counts(len(paths), 2 * len(paths), 2 * len(paths))
    for path, stamp in paths.items():
        assert stamp == f"of {path}"
        words = _words(int(path))
        assert (_keyword(index, words)[0], _nearest(index, words)) == (path, path)
    index.close()
    return len(paths)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The log of 40 documents."""
    file = tmp_path / "b.log"
    index = _open(file)
    for number in range(40):
        index.apply([_document(str(number), _words(number), "with a giraffe")])
    index.close()
    return file


def _damaged_pages(whole: bytes) -> Iterator[bytes]:
    for start in range(0, len(whole), _PAGE):
        page = whole[start : start + _PAGE]
        for damaged in (
            b"\xde\xad" * (_PAGE // 2),
            bytes(_PAGE),
            page.replace(b"zebra", b"zobra"),
            page[:-9] + bytes([page[-9] ^ 1]) + page[-8:],
            MARK * 3 + page[12:],
        ):
            yield whole[:start] + damaged + whole[start + _PAGE :]


def test_damage_anywhere_is_noticed(file: Path) -> None:
    for damaged in _damaged_pages(file.read_bytes()):
        file.write_bytes(damaged)
        _require_sound(file)


def test_damage_costs_no_other_document(file: Path) -> None:
    whole = file.read_bytes()
    for place in range(whole.index(MARK), len(whole), 1999):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        # The second time, of the log that was written anew.
        assert [_require_sound(file) for _ in range(2)] == [39, 39]


def test_a_damaged_record_may_be_longer_than_what_is_searched_at_once(tmp_path: Path) -> None:
    file = tmp_path / "b.log"
    index = _open(file)
    # Marks begin at different places of the pieces that are searched.
    for number in range(9):
        index.apply([_document(str(number), _words(number), "x" * (2**16 - 9 + number))])
    index.close()
    file.write_bytes(file.read_bytes().replace(b"zebra4", b"zobra4"))
    assert _require_sound(file) == 8


def test_a_truncated_log_keeps_what_is_whole(file: Path) -> None:
    whole = file.read_bytes()
    last = whole.rindex(MARK)
    for length in (*range(0, last, last // 41), *range(last, len(whole), 71), len(whole)):
        file.write_bytes(whole[:length])
        complete = max(0, whole[:length].count(MARK) - (length < len(whole)))
        assert _require_sound(file) >= complete


@pytest.mark.parametrize("written", [0, 1, 500])
def test_a_failed_write_changes_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    index = _open(file)

    def write_part(log: FileIO, content: bytes) -> None:
        log.write(content[:written])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("memoryd.index.log.write_whole", write_part)
        with pytest.raises(OSError, match="No space"):
            index.apply([_document("40", _words(40), "with a giraffe")], removed=["1"])
    assert _keyword(index, f"{_words(1)} {_words(40)}") == ["1"]
    assert index.counts().documents == 40
    index.apply([_document("41", _words(41), "with a giraffe")])
    index.close()
    assert _require_sound(file) == 41


def test_a_log_of_mostly_old_records_is_rewritten(file: Path) -> None:
    index = _open(file)
    for number in range(3 * LEAST_WASTE):
        index.apply([_document("0", f"lion{number}", "a"), _document("1", _words(1), "b")])
    most = LEAST_WASTE + 2 * 40 + 2
    assert file.read_bytes().count(MARK) <= most
    again = _open(file)
    for opened in (index, again):
        assert _keyword(opened, f"lion{3 * LEAST_WASTE - 1} lion5 zebra1") == ["0", "1"]
        assert _nearest(opened, _words(39)) == "39"
        assert opened.counts() == Counts(40, 80, 80)
        opened.close()


def test_a_large_document_that_is_replaced_does_not_grow_the_log(tmp_path: Path) -> None:
    """150 texts of 1 MiB, of which none was left, took 150 MiB, with all that they said."""
    file = tmp_path / "b.log"
    index = _open(file)
    for number in range(12):
        index.apply([_document("a", f"lion{number} " + 2**20 * "x")])
        assert file.stat().st_size <= 2 * 2**20 + LEAST_WASTED_BYTES + 2**12
    index.close()
    again = _open(file)
    assert _keyword(again, "lion11 lion10") == ["a"]
    for number in range(9):
        again.apply([_document(f"{number}", 2**20 * "x")])
        again.apply(removed=[f"{number}", "a"])
    assert again.counts().documents == 0
    assert file.stat().st_size <= LEAST_WASTED_BYTES
    again.close()


def test_a_rewrite_that_failed_is_not_tried_at_each_change(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, attempts = _open(file), list[int]()

    def refuse(*_: object) -> None:
        attempts.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memoryd.index.log.Log.rewritten", refuse)
    for number in range(3 * LEAST_WASTE):
        index.apply([_document("0", f"lion{number}")])
    for _ in range(9):
        index.apply([_document("0", 2**20 * "x")])
    index.close()
    assert 2 <= len(attempts) <= 6


def test_what_a_failed_write_leaves_is_overwritten(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next failure cut a record that had been acknowledged."""
    index = _open(file)

    def write_part(log: FileIO, content: bytes) -> None:
        log.write(content[:50])
        raise OSError(28, "No space left on device")

    class Stubborn(FileIO):
        def truncate(self, size: int | None = None) -> int:
            raise OSError(5, f"cannot truncate to {size}")

    index.close()
    with monkeypatch.context() as full:
        full.setattr("memoryd.index.log.FileIO", Stubborn)
        index = _open(file)
        full.setattr("memoryd.index.log.write_whole", write_part)
        with pytest.raises(OSError, match="No space"):
            index.apply([_document("40", _words(40), "with a giraffe")])
    index.apply([_document("41", _words(41), "with a giraffe")])
    with monkeypatch.context() as full:
        full.setattr("memoryd.index.log.write_whole", write_part)
        with pytest.raises(OSError, match="No space"):
            index.apply([_document("42", _words(42), "with a giraffe")])
    index.close()
    assert _require_sound(file) == 41


def test_a_log_that_cannot_be_rewritten_stays(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_bytes(file.read_bytes().replace(b"zebra7 ", b"zobra7 "))
    before = file.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("memoryd.index.log.write_whole", refuse)
        assert _require_sound(file) == 39
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert "cannot rewrite" in caplog.text
    assert [_require_sound(file) for _ in range(2)] == [39, 39]
    assert file.read_bytes() != before


def test_an_index_of_another_embedder_or_format_is_emptied(file: Path) -> None:
    for embedder, documents in ((_EMBEDDER.name, 40), (None, 0), (_EMBEDDER.name, 0)):
        index = _open(file, embedder)
        assert index.counts().documents == documents
        index.close()
    file.write_bytes(b"no log at all" * 999)
    assert _require_sound(file) == 0


def test_a_removal_may_be_lost_before_vectors_of_other_dimensions(tmp_path: Path) -> None:
    file = tmp_path / "b.log"
    index = _open(file)
    index.apply([_document("a", "zebra")])
    index.apply(removed=["a"])
    other = _document("b", "lion")
    index.apply([replace(other, vectors=[vector[:100] for vector in other.vectors or ()])])
    index.close()
    file.write_bytes(file.read_bytes().replace(b'{"path":"a"}', b'{"path":"b"}'))
    again = _open(file)
    assert list(again.stamps()) == ["a"]
    assert _nearest(again, "zebra") == "a"
    again.close()


def test_an_index_is_reopened_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "b.log"
    index = _open(file)
    index.apply([_document("gone", "lion"), _document("a\0ä", "zebra", "giraffe\0\u1cf2")])
    index.apply([_document("empty")], removed=["gone", "never"])
    index.close()
    again = _open(file)
    assert again.stamps() == {"a\0ä": "of a\0ä", "empty": "of empty"}
    assert again.counts() == Counts(2, 2, 2)
    assert [again.chunk(slot) for slot in (1, 2)] == [index.chunk(slot) for slot in (1, 2)]
    again.close()


def test_a_closed_index_can_be_read_and_not_written(file: Path) -> None:
    index = _open(file)
    index.close()
    with pytest.raises(ValueError, match="closed"):
        index.apply([_document("40", "lion")])
    assert _keyword(index, "zebra3 lion") == ["3"]
