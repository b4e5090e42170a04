"""Files that were made to break their reader: the program refuses them, and soon."""

import contextlib
import gzip
import json
import lzma
import os
import socket
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import shell
from tests.program import ForkServer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_MEMORY = 1 << 30
"""Limit of address space; the program takes half of it for its libraries alone."""
_SECONDS = 60
"""A refusal takes two; each file here once took minutes, all memory, or for ever."""

_ROW = {"id": "q1", "question": "Who?", "expected_substrings": ["Ada"]}


@dataclass(frozen=True)
class _Refusal:
    code: int
    error: str


Run = Callable[..., _Refusal]


@pytest.fixture
def run(tmp_path: Path, fork_server: ForkServer) -> Run:
    """Calls the program, which has little memory, in the test's folder."""

    def call(*arguments: str | Path) -> _Refusal:
        ended = fork_server.run(
            arguments, folder=tmp_path, environment=shell(), timeout=_SECONDS, memory=_MEMORY
        )
        assert "Traceback" not in ended.stderr, ended.stderr
        return _Refusal(ended.returncode, ended.stderr)

    return call


def _require_refusal(refusal: _Refusal, *texts: str) -> None:
    assert refusal.code == 2, refusal.error
    for text in texts:
        assert text in refusal.error, refusal.error


def _compressed(path: Path, open_: Callable[..., Any], head: bytes, size: int) -> Path:
    """A file that unpacks to `size` bytes, nearly all of them spaces."""
    with open_(path, "wb") as file:
        file.write(head)
        for _ in range(size >> 20):
            file.write(b" " * (1 << 20))
    return path


@pytest.mark.parametrize("head", [b"[", b'["', b'{"items": [', b'{"items": "'], ids=repr)
def test_a_decompression_bomb_is_refused_in_bounded_memory(
    run: Run, tmp_path: Path, head: bytes
) -> None:
    bomb = _compressed(tmp_path / "bomb.json.zst", zstd.open, head, 1 << 30)
    assert bomb.stat().st_size < 1 << 20
    _require_refusal(run("datasets", "info", bomb), "bomb.json.zst decompresses from")


_READERS: tuple[tuple[str, ...], ...] = (
    ("datasets", "info", "FILE"),
    ("datasets", "convert", "FILE", "-o", "out.json"),
    (
        *("datasets", "compile-history", "--evidence", "FILE", "--filler", "FILE"),
        *("--min-filler", "1", "--max-filler", "1", "-o", "out.json"),
    ),
    ("bench", "--suite", "longmemeval", "--data", "FILE", "--system", "flat-bm25"),
    ("bench", "--suite", "sample", "--system", "flat-bm25", "--errata", "FILE"),
)


@pytest.fixture(scope="module", params=[".gz", ".xz"])
def bomb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bombs") / f"bomb.json{request.param}"
    open_: Any = {".gz": gzip.open, ".xz": lzma.open}[request.param]
    return _compressed(path, open_, b"[", 80 << 20)


@pytest.mark.parametrize("reader", _READERS, ids=" ".join)
def test_every_reader_refuses_a_decompression_bomb(
    run: Run, tmp_path: Path, bomb: Path, reader: tuple[str, ...]
) -> None:
    arguments = [str(bomb) if argument == "FILE" else argument for argument in reader]
    _require_refusal(run(*arguments), f"{bomb} decompresses from")
    assert not (tmp_path / "out.json").exists()


def test_an_xz_file_that_demands_gigabytes_of_dictionary_is_refused(
    run: Run, tmp_path: Path
) -> None:
    packed = lzma.compress(b"[]")
    header = bytearray(packed[12:20])
    assert header[2] == 0x21, "the identifier of LZMA2"
    header[4] = 40  # a dictionary of 4 GiB
    checksum = zlib.crc32(header).to_bytes(4, "little")
    path = tmp_path / "huge.json.xz"
    path.write_bytes(packed[:12] + header + checksum + packed[24:])
    _require_refusal(run("datasets", "info", path), "huge.json.xz: Memory usage limit")


def test_a_zst_file_that_demands_gigabytes_of_window_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "huge.json.zst"
    magic, no_flags, window_of_2_gib, last_block_of_2 = (
        b"\x28\xb5\x2f\xfd", b"\x00", bytes([(31 - 10) << 3]), b"\x11\x00\x00",
    )  # fmt: skip
    path.write_bytes(magic + no_flags + window_of_2_gib + last_block_of_2 + b"[]")
    _require_refusal(run("datasets", "info", path), "huge.json.zst", "memory")


def _sparse(path: Path, head: bytes, size: int) -> Path:
    path.write_bytes(head)
    os.truncate(path, size)
    return path


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--sdk", "url:http://127.0.0.1:9", "--scorer", "exact", "--dataset", "long.jsonl"),
        ("datasets", "lint", "long.jsonl"),
        ("datasets", "info", "--format", "jsonl", "long.jsonl"),
    ],
    ids=" ".join,
)
def test_a_line_of_many_gigabytes_is_refused_by_its_number(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    row = json.dumps(_ROW).encode()
    _sparse(tmp_path / "long.jsonl", row + b'\n{"id": "q2", "question": "', 8 << 30)
    (tmp_path / "long" / "corpus").mkdir(parents=True)
    (tmp_path / "long" / "corpus" / "a.md").write_text("Ada")
    _require_refusal(run(*arguments), "long.jsonl has more than", "in line 2")


def test_a_file_of_a_terabyte_that_is_held_in_memory_is_refused(run: Run, tmp_path: Path) -> None:
    path = _sparse(tmp_path / "conformance.yaml", b"- id: x\n", 1 << 40)
    _require_refusal(run("conform", "lint", "--cases", tmp_path), f"{path} has more")


@pytest.fixture
def odd_file(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """What is at a path and no file to read."""
    path = tmp_path / "odd.jsonl"
    match request.param:
        case "a pipe":
            os.mkfifo(path)
        case "a device":
            path.symlink_to("/dev/zero")
        case "a folder":
            path.mkdir()
        case "a socket":
            # Its name has little room: the path of a test may be longer.
            with contextlib.chdir(tmp_path), socket.socket(socket.AF_UNIX) as bound:
                bound.bind(path.name)
    yield path
    path.rmdir() if path.is_dir() else path.unlink()


_ODD_READERS = (
    *_READERS,
    ("datasets", "lint", "FILE"),
    ("run", "--sdk", "url:http://127.0.0.1:9", "--scorer", "exact", "--dataset", "FILE"),
    ("datasets", "list", "--sources", "FILE"),
    ("conform", "--sdk", "url:http://127.0.0.1:9", "--known", "FILE"),
    ("upstream", "--addr", "127.0.0.1:0", "--script", "FILE"),
)


@pytest.mark.parametrize("odd_file", ["a pipe"], indirect=True)
@pytest.mark.parametrize("reader", _ODD_READERS, ids=" ".join)
def test_no_reader_waits_for_the_writer_of_a_pipe(
    run: Run, odd_file: Path, reader: tuple[str, ...]
) -> None:
    arguments = [str(odd_file) if argument == "FILE" else argument for argument in reader]
    _require_refusal(run(*arguments), f"{odd_file} is a pipe, not a regular file")


@pytest.mark.parametrize("odd_file", ["a device", "a socket"], indirect=True)
@pytest.mark.parametrize("verb", ["lint", "info"])
def test_devices_and_sockets_are_rejected(run: Run, odd_file: Path, verb: str) -> None:
    _require_refusal(run("datasets", verb, odd_file), "not a regular file")


@pytest.mark.parametrize("odd_file", ["a folder"], indirect=True)
def test_a_folder_in_place_of_a_file_is_rejected(run: Run, odd_file: Path) -> None:
    for arguments in (("datasets", "lint", odd_file), ("datasets", "info", odd_file)):
        _require_refusal(run(*arguments), str(odd_file))


_LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 50_000, "nests more than 64 levels"),
        ("[" * 50_000 + "]" * 50_000, "nests more than 64 levels"),
        (_LAUGHS, "with its aliases"),
        ("a: 1:59" + ":59" * 300_000, "a number has more than 400 characters"),
    ],
    ids=["unclosed", "nested", "aliases", "base 60"],
)
def test_yaml_that_caused_a_segmentation_fault_or_a_hang_is_rejected(
    run: Run, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "x.yaml").write_text(text)
    _require_refusal(run("conform", "lint", "--cases", tmp_path), "x.yaml:", says)
    known = ("conform", "--sdk", "url:http://127.0.0.1:9", "--known", "x.yaml")
    _require_refusal(run(*known), "x.yaml:", says)


_DEEP = "[" * 100_000


@pytest.mark.parametrize("ending", [".json", ".jsonl"])
@pytest.mark.parametrize(
    "text", [_DEEP, f'{{"items": {_DEEP}', f'{{"id": "a", "question": "b", "x": {_DEEP}']
)
def test_endlessly_nested_json_is_an_error(
    run: Run, tmp_path: Path, ending: str, text: str
) -> None:
    path = tmp_path / f"deep{ending}"
    path.write_text(text + "\n")
    _require_refusal(run("datasets", "info", path), str(path))
