"""Kinds of results that verbs compare or score, and the flags of those that compare benches."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.cli.commands import option
from memconform.errors import UsageError
from memconform.runs.journal import Header
from memconform.storage.folders import (
    JOURNAL,
    find_journal,
    find_result,
    result_files,
    split_reference,
)
from memconform.storage.journal import read_header
from memconform.storage.result_file import schema_of

BENCH_SCHEMA_PREFIX = "memconform/bench-report@"
"""Whatever the version: the reader of benches says which versions it can read."""

REPLAY_SCHEMA_PREFIX = "memconform/lme-result@"

METHOD = "Method"

metric = option(
    "--metric",
    group=METHOD,
    metavar="RATE@K",
    show_default="recall_any at the largest k",
    help="For results of bench: the rate by which a query passes, recall_any@K or recall_all@K.",
)
view = option(
    "--view",
    group=METHOD,
    metavar="VIEW",
    show_default="all",
    help="For results of bench: the view that says what is relevant, such as official.",
)


@dataclass(frozen=True, slots=True)
class BenchParityOptions:
    """Flags of `parity compare`, as far as they apply to results of `bench`."""

    references: tuple[str, ...]
    output: Path
    metric: str | None
    view: str | None
    margin: float
    alpha: float
    strict: bool
    json_file: str | None
    markdown: str | None
    quiet: bool


@dataclass(frozen=True, slots=True)
class BenchDiffOptions:
    """Flags of `diff`, as far as they apply to results of `bench`."""

    first: str
    second: str
    output: Path
    metric: str | None
    view: str | None
    limits: Sequence[float | None]
    """Ratios of latency; None for `regression`."""
    seed: int
    json_file: str | None
    markdown: str | None
    quiet: bool


def are_benches(references: Sequence[str], output: Path, *, bench_only: Sequence[object]) -> bool:
    """Whether all references are to results of `bench`, so that they must be compared as such.

    Args:
        references: `RESULT[#ROW]` each.
        output: the folder in which run ids are looked up.
        bench_only: values of flags that only results of `bench` have; None if not given.

    Raises:
        UsageError: if a result does not exist (`unknown_run`), runs and benches are mixed
            (`unlike_runs`), or others are compared with flags for benches (`bad_option`).
    """
    kinds = [_is_bench(reference, output) for reference in references]
    if len(set(kinds)) > 1:
        bench, other = references[kinds.index(True)], references[kinds.index(False)]
        raise UsageError(
            f"{bench} is the result of a bench, and {other} is not",
            code="unlike_runs",
            hint="compare results of `bench` with each other; with other results compare the"
            " answers that `memconform score` makes of a bench",
        )
    if all(kinds):
        return True
    if any(value is not None for value in bench_only):
        raise UsageError(
            "--metric and --view are for results of `bench`",
            code="bad_option",
            hint="omit them: a question of a run passes by its scorer",
        )
    return False


def compared_kind(references: Sequence[str], output: Path) -> Literal["runs", "replays", "trend"]:
    """What `diff` compares: two results, two of the replay, or whatever more or folders hold.

    Raises:
        UsageError: if one of two results does not exist (`unknown_run`), or if there is one alone
            that is not a folder (`one_run`).
    """
    if len(references) == 1 and not Path(references[0]).is_dir():
        raise UsageError(
            f"{references[0]} is a single result",
            code="one_run",
            hint="give another one to compare it with, or a folder of results",
        )
    if len(references) != 2 or any(map(_is_folder_of_results, references)):
        return "trend"
    return "replays" if all(_is_replay(each, output) for each in references) else "runs"


def _is_folder_of_results(reference: str) -> bool:
    path = Path(reference)
    of_run = any((path / name).is_file() for name in ("result.json", JOURNAL))
    return path.is_dir() and not of_run and not result_files(path)


def _is_replay(reference: str, output: Path) -> bool:
    """Whether a result is of `lme`, or of another runner, whose files name no schema."""
    name, _ = split_reference(reference)
    if result_files(Path(name)):
        return True
    path = find_result(output, name)
    try:
        return schema_of(path).startswith(REPLAY_SCHEMA_PREFIX)
    except (OSError, RecursionError, json.JSONDecodeError, UnicodeDecodeError):
        # The reader of results says what is wrong with the file.
        return False
    except ValueError:
        return path.suffix == ".json"


ScoredKind = Literal["run", "bench", "file"]


def scored_kind(references: Sequence[str], output: Path) -> ScoredKind:
    """What is to be scored: a run, one or several benches, or a file that memconform did not write.

    Raises:
        UsageError: if a result does not exist (`unknown_run`), or several are given that are not
            all benches (`unlike_runs`).
    """
    kinds = [_scored_kind(reference, output) for reference in references]
    if len(kinds) > 1 and set(kinds) != {"bench"}:
        raise UsageError(
            f"{references[kinds.index('run' if 'run' in kinds else 'file')]} is not a bench, and"
            " is scored alone",
            code="unlike_runs",
            hint="give one run or one file at a time; only results of `bench` are read together",
        )
    return kinds[0]


def _scored_kind(reference: str, output: Path) -> ScoredKind:
    if Path(reference).is_file():
        try:
            schema_of(Path(reference))
        except (ValueError, RecursionError):
            return "file"
        except OSError:
            # The reader of results says why.
            return "run"
    try:
        return "bench" if _is_bench(reference, output) else "run"
    except UsageError:
        # A run that was interrupted has a journal alone, which is enough; a bench has one, too.
        with suppress(UsageError):
            read_header(find_journal(output, reference), Header)
            return "run"
        raise


def _is_bench(reference: str, output: Path) -> bool:
    name, _ = split_reference(reference)
    if result_files(Path(name)):
        return False
    path = find_result(output, name)
    try:
        return schema_of(path).startswith(BENCH_SCHEMA_PREFIX)
    except (ValueError, OSError, RecursionError):
        # The reader of results says what is wrong with the file.
        return False
