"""What is said of a run that ended before it had a result."""

from pathlib import Path
from typing import Literal

import pytest

from memconform.cli.result_kinds import compared_kind, scored_kind
from memconform.errors import UsageError
from memconform.storage.folders import JOURNAL, find_result
from memconform.storage.journal import JournalFile, JournalHeader


def _unfinished(output: Path, schema: str) -> Path:
    folder = output / "runs" / "one"
    folder.mkdir(parents=True)

    class _Header(JournalHeader):
        schema_version: Literal["memconform/journal@3", "memconform/bench-journal@1"]

    JournalFile(folder / JOURNAL, _Header(schema_version=f"memconform/{schema}")).close()
    return folder


@pytest.mark.parametrize(
    ("schema", "how"),
    [
        ("journal@3", "memconform run --resume continues it"),
        ("bench-journal@1", "memconform bench --resume continues it"),
    ],
)
def test_a_run_without_a_result_is_called_unfinished(tmp_path: Path, schema: str, how: str) -> None:
    """By its id there was "no run of that name", and its folder was taken for one of results."""
    folder = _unfinished(tmp_path, schema)
    for reference in ("one", str(folder)):
        with pytest.raises(UsageError, match="has no result: it was interrupted") as caught:
            find_result(tmp_path, reference)
        assert (caught.value.code, caught.value.hint) == ("no_result", how)
    with pytest.raises(UsageError, match="has no result"):
        compared_kind([str(folder), str(folder)], tmp_path)


def test_a_bench_without_a_result_is_no_run_to_score(tmp_path: Path) -> None:
    """It was refused with the flags of a run."""
    folder = _unfinished(tmp_path, "bench-journal@1")
    with pytest.raises(UsageError, match="has no result"):
        scored_kind([str(folder)], tmp_path)
