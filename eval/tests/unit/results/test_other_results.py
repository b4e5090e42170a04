"""A result of another command is named as such, with what reads it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memconform.errors import UsageError
from memconform.results.loaded_runs import load_runs
from memconform.runs.journal import Header
from memconform.storage.folders import find_journal, find_result
from memconform.storage.journal import read_header


def _written(folder: Path, name: str, schema: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(json.dumps({"schema_version": schema, "rows": []}) + "\n")
    return file


def test_a_bench_that_is_shown_like_a_run_says_what_compares_it(tmp_path: Path) -> None:
    """`parity show` of a bench said that it is no result, and not what to use."""
    _written(tmp_path / "runs" / "b", "result.json", "memconform/bench-report@1")
    with pytest.raises(UsageError, match="was written by `memconform bench`") as caught:
        load_runs(("b", "b"), tmp_path)
    assert caught.value.code == "result_unreadable"
    assert "memconform parity compare" in caught.value.hint


@pytest.mark.parametrize("find", [find_result, find_journal])
def test_a_folder_of_conform_is_no_unknown_run(
    tmp_path: Path, find: Callable[[Path, str], Path]
) -> None:
    _written(tmp_path / "runs" / "c", "conform.json", "memconform/conform-report@1")
    for reference in ("c", str(tmp_path / "runs" / "c")):
        with pytest.raises(UsageError, match="was written by `memconform conform`"):
            find(tmp_path, reference)
    with pytest.raises(UsageError, match="no r") as caught:
        find(tmp_path, "missing")
    assert caught.value.code == "unknown_run"


def test_a_result_of_a_replay_is_no_unknown_run(tmp_path: Path) -> None:
    """`score result-go.json` said that there was no such run."""
    file = _written(tmp_path, "result-go.json", "memconform/lme-result@1")
    with pytest.raises(UsageError, match="was written by `memconform lme") as caught:
        find_journal(tmp_path, str(file))
    assert caught.value.code == "result_unreadable"


def test_the_journal_of_a_bench_is_no_damaged_journal(tmp_path: Path) -> None:
    journal = _written(tmp_path, "journal.jsonl", "memconform/bench-journal@1")
    with pytest.raises(UsageError, match="bench"):
        read_header(journal, Header)
