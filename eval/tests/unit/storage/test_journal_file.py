"""The frame of every journal: header, records, footer; and what a damaged one is called."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import TypeAdapter

from memconform.errors import ResultsError, UsageError
from memconform.records import Record
from memconform.storage.journal import (
    JournalFile,
    JournalHeader,
    has_begun,
    read_header,
    read_records,
    require_same_settings,
)


class _Header(JournalHeader):
    schema_version: Literal["memconform/bench-journal@2"] = "memconform/bench-journal@2"
    run_id: str


class _Line(Record):
    stage: str = "line"
    number: int


_LINES = TypeAdapter(_Line)


class _Full:
    """A file whose writes are another function's."""

    def __init__(self, file: Any, write: Callable[[bytes], int]) -> None:
        self._file = file
        self.write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _write(path: Path, *numbers: int, footer: bool = True) -> list[int]:
    journal = JournalFile(path, _Header(run_id="one"))
    offsets = journal.append(*(_Line(number=number) for number in numbers))
    if footer:
        journal.close(ended="done")
    return offsets


def test_reads_what_was_written_with_its_places(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    offsets = _write(path, 1, 2, 3)
    assert read_header(path, _Header).run_id == "one"
    assert [(place, line.number) for place, line in read_records(path, _LINES)] == list(
        zip(offsets, (1, 2, 3), strict=True)
    )


def test_a_last_line_without_an_end_was_being_written(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    _write(path, 1, footer=False)
    for cut in ('{"stage"', "{}", '{"stage":"line","number":7}'):
        with path.open("a") as file:
            size = file.tell()
            file.write(cut)
        assert [line.number for _, line in read_records(path, _LINES)] == [1], cut
        with path.open("r+") as file:
            file.truncate(size)


@pytest.mark.parametrize("damage", ["garbage", "{}", "\0\0", "[1]", '{"number":"x"}', ""])
def test_a_damaged_line_is_named(tmp_path: Path, damage: str) -> None:
    """A bench called its own journal none of a bench when one line was damaged."""
    path = tmp_path / "journal.jsonl"
    _write(path, 1, 2)
    header, first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([header, first, damage, *rest, ""]))
    records = read_records(path, _LINES)
    assert next(records)[1].number == 1
    with pytest.raises(UsageError, match="line 3 is not a record") as caught:
        next(records)
    assert (caught.value.code, str(path) in caught.value.message) == ("journal_unreadable", True)


def test_a_damaged_header_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    _write(path, 1)
    path.write_text(path.read_text().replace('"run_id":"one"', '"run_id":1'))
    with pytest.raises(UsageError, match="its header is damaged") as caught:
        read_header(path, _Header, "delete it")
    assert caught.value.hint == "delete it"


def test_a_line_that_a_full_disk_cuts_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The footer continued it, and the whole journal was refused."""
    path = tmp_path / "journal.jsonl"
    journal = JournalFile(path, _Header(run_id="one"))
    journal.append(_Line(number=1))
    write, calls = journal._file.write, []

    def cut(data: bytes) -> int:
        calls.append(data)
        if len(calls) == 1:
            return int(write(data[:7]))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(journal, "_file", _Full(journal._file, cut))
        with pytest.raises(ResultsError, match="No space left"):
            journal.append(_Line(number=2))
    journal.close(ended="error")
    assert [line.number for _, line in read_records(path, _LINES)] == [1]
    assert path.read_text().splitlines()[-1] == '{"stage": "footer", "ended": "error"}'


@pytest.mark.parametrize("damage", ["", "{}\n", "[]\n", "\0\n", '{"run_id":"one"}', "[" * 99_999])
def test_a_file_without_a_header_is_no_journal(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(damage)
    with pytest.raises(UsageError, match="it is not a journal of `memconform bench`") as caught:
        read_header(path, _Header)
    assert caught.value.code == "journal_unreadable"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    for read in (
        has_begun,
        lambda path: read_header(path, _Header),
        lambda path: next(read_records(path, _LINES)),
    ):
        with pytest.raises(UsageError, match="No such file") as caught:
            read(tmp_path / "missing.jsonl")
        assert caught.value.code == "journal_unreadable"


def test_a_journal_of_another_version_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    _write(path, 1)
    path.write_text(path.read_text().replace("bench-journal@2", "bench-journal@1"))
    with pytest.raises(UsageError, match="another version of memconform wrote it") as caught:
        read_header(path, _Header)
    assert "bench-journal@1" in caught.value.message


def test_the_journal_of_another_command_is_called_that(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    _write(path, 1)
    path.write_text(path.read_text().replace("bench-journal@2", "lme-journal@2"))
    with pytest.raises(UsageError, match="was written by `memconform lme`") as caught:
        read_header(path, _Header)
    assert caught.value.code == "result_unreadable"


def test_a_mismatch_says_what_was_and_what_is(tmp_path: Path) -> None:
    path = tmp_path / "a-run" / "journal.jsonl"
    earlier = {"repeat": 3, "judge": {"model": "a", "seed": 1}, "data_sha256": "0" * 64, "old": 1}
    now = {"repeat": 1, "judge": {"model": "b"}, "data_sha256": "1" * 64, "new": 2}
    require_same_settings(path, now, now, "nothing")
    with pytest.raises(UsageError) as caught:
        require_same_settings(path, earlier, now, "the same flags")
    assert caught.value.message == (
        f"{path.parent} was made with other settings: repeat was 3, is 1;"
        " judge.model was a, is b; judge.seed was 1, is None; data; new was None, is 2;"
        " old was 1, is None"
    )
    assert (caught.value.code, caught.value.hint) == ("resume_mismatch", "the same flags")
