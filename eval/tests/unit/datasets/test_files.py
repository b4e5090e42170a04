"""What is read of a data file is bounded, and what is sensible is read."""

import gzip
import lzma
import sys
from pathlib import Path
from typing import Any

import pytest

from memconform.datasets import files, json_array
from memconform.datasets.files import PieceReader, line_at, lines, read_whole
from memconform.datasets.json_array import elements
from memconform.errors import UsageError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_PACKERS = [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstd.compress)]


def _read(path: Path) -> bytes:
    with PieceReader(path) as source:
        return source.rest()


@pytest.mark.parametrize(("ending", "pack"), _PACKERS)
def test_a_file_that_unpacks_to_too_many_times_its_size_is_refused(
    tmp_path: Path, ending: str, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a.json{ending}"
    path.write_bytes(pack(bytes(2 << 20)))
    assert len(_read(path)) == 2 << 20, "a small file may have any ratio"
    monkeypatch.setattr(files, "_RATIO_FROM", 1 << 20)
    with pytest.raises(UsageError, match="decompresses from") as error:
        _read(path)
    assert error.value.code == "dataset_too_large"


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), *_PACKERS])
def test_a_file_of_more_bytes_than_the_limit_is_refused(
    tmp_path: Path, ending: str, pack: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"a.json{ending}"
    path.write_bytes(pack(b"x" * 5_000))
    monkeypatch.setattr(files, "MAX_BYTES", 5_000)
    assert len(_read(path)) == 5_000
    monkeypatch.setattr(files, "MAX_BYTES", 4_999)
    with pytest.raises(UsageError, match="more than 4,999 bytes"):
        _read(path)


def test_a_file_that_is_held_in_memory_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 100)
    assert len(read_whole(path, 100)) == 100
    with pytest.raises(UsageError, match="more than 99 bytes"):
        read_whole(path, 99)
    with PieceReader(path) as source, pytest.raises(UsageError, match="more than 99 bytes"):
        source.rest(99)


def test_an_element_that_does_not_end_is_refused_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'[1,\n"' + b"x" * 400_000 + b'"]')
    monkeypatch.setattr(json_array, "PIECE", 1_000)
    with PieceReader(path) as source:
        assert len(list(elements(source))) == 2
    monkeypatch.setattr(json_array, "_MAX_ELEMENT", 100_000)
    with (
        PieceReader(path) as source,
        pytest.raises(UsageError, match="more than 100,000 characters, at byte 4, line 2"),
    ):
        list(elements(source))
    assert source.size < 110_000


def test_a_line_that_does_not_end_is_refused_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"1\n2\n" + b"x" * (3 << 20))
    monkeypatch.setattr(files, "MAX_LINE", 1 << 20)
    with PieceReader(path) as source, pytest.raises(UsageError, match="in line 3"):
        list(lines(source))


@pytest.mark.parametrize("padding", [b"", bytes(4), bytes(3 << 20)])
def test_all_streams_of_an_xz_file_are_read(tmp_path: Path, padding: bytes) -> None:
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(b"one") + padding + lzma.compress(b"two") + padding)
    assert _read(path) == b"onetwo"


@pytest.mark.parametrize("preset", [0, 6, 9, 9 | lzma.PRESET_EXTREME])
def test_every_preset_of_xz_is_read(tmp_path: Path, preset: int) -> None:
    content = bytes(range(256)) * 20_000
    path = tmp_path / "a.xz"
    path.write_bytes(lzma.compress(content, preset=preset))
    assert _read(path) == content


@pytest.mark.parametrize("packed", [b"", lzma.compress(b"one")[:-4], lzma.compress(b"one") + b"x"])
def test_a_damaged_xz_file_is_refused(tmp_path: Path, packed: bytes) -> None:
    path = tmp_path / "a.xz"
    path.write_bytes(packed)
    with pytest.raises(UsageError, match=r"a\.xz: "):
        _read(path)


def test_the_line_of_a_byte(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\nb\nc")
    assert [line_at(path, byte) for byte in range(6)] == [1, 1, 2, 2, 3, 3]
