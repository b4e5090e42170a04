"""Results of any verb that scores answers, named by file, folder or id, in the form of runs."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from pkgutil import resolve_name

from memconform.errors import UsageError, nearest
from memconform.results.loaded_runs import LoadedRun, name_runs, read_run
from memconform.runs.results import RESULT_SCHEMA
from memconform.storage.folders import ROW_MARK, find_result, result_files, split_reference
from memconform.storage.result_file import has_lines, schema_of

SCORED: Mapping[str, str] = {
    "memconform/answer-report@1": "answers:read_answers",
    "memconform/lme-result@1": "replays:read_replay",
    "memconform/qa-report@1": "answers:read_judgements",
    "memconform/wmb-score@1": "wmb_scores:read_wmb_score",
}
"""By schema, what reads the subjects of a result that `run` did not write; imported on use."""
WITH_LINES = (
    *("memconform/answer-report@1", "memconform/qa-report@1"),
    "memconform/wmb-score@1",
)
"""Those whose answers are behind the report, and missing in the file of `--json`."""


def load_results(references: Sequence[str], output: Path) -> list[LoadedRun]:
    """Load every subject that references name.

    A reference is a result file, a run's folder or a run's id below `output`; `#SUBJECT` or a
    pattern such as `#go*` behind it selects some of its subjects.

    Raises:
        UsageError: if a result is missing (`unknown_run`), is none of scored answers, or
            contradicts itself (`result_unreadable`), has no such subject (`unknown_row`), or was
            given twice (`one_run_twice`).
    """
    return name_runs([run for each in references for run in _load(each, output).values()])


def load_pair(first: str, second: str, output: Path) -> tuple[LoadedRun, LoadedRun]:
    """Load two subjects.

    Raises:
        UsageError: as `load_results`, and if a reference names several (`several_results`).
    """
    runs: list[LoadedRun] = []
    for reference in (first, second):
        subjects = _load(reference, output)
        if len(subjects) > 1:
            name, _ = split_reference(reference)
            raise UsageError(
                f"{reference} has results of {', '.join(subjects)}",
                code="several_results",
                hint=f"name one: '{name}{ROW_MARK}{next(iter(subjects))}'",
            )
        runs += subjects.values()
    one, other = name_runs(runs)
    return one, other


def read_subjects(path: Path, pattern: str = "") -> dict[str, LoadedRun]:
    """The subjects of a result file by name, or those that a pattern selects.

    Raises:
        UsageError: as `load_results`.
    """
    try:
        reference = SCORED.get(schema_of(path))
    except (ValueError, OSError, RecursionError):
        reference = None
    if reference is not None:
        read: Callable[[Path], dict[str, LoadedRun]] = resolve_name(
            f"memconform.results.{reference}"
        )
        return _selected(read(path), pattern, path)
    run = read_run(path)
    return _selected({run.name: run}, pattern, path)


def is_scored(path: Path) -> bool:
    """Whether a file is a result of scored answers, and has them.

    Raises:
        OSError: if it is unreadable.
    """
    try:
        schema = schema_of(path)
    except (ValueError, RecursionError):
        return False
    return schema == RESULT_SCHEMA or (
        schema in SCORED and (schema not in WITH_LINES or has_lines(path))
    )


def _load(reference: str, output: Path) -> dict[str, LoadedRun]:
    name, pattern = split_reference(reference)
    if files := result_files(Path(name)):
        # Each file is one SDK's.
        subjects = {label: run for file in files for label, run in read_subjects(file).items()}
        return _selected(subjects, pattern, Path(name))
    return read_subjects(find_result(output, name), pattern)


def _selected(subjects: Mapping[str, LoadedRun], pattern: str, path: Path) -> dict[str, LoadedRun]:
    # A name may contain a bracket, so it is compared as it is before it is taken as a pattern.
    if not pattern or pattern in subjects:
        return {name: subjects[name] for name in ([pattern] if pattern else subjects)}
    chosen = {name: run for name, run in subjects.items() if fnmatchcase(name, pattern)}
    if not chosen:
        raise UsageError(
            f"{path} has no result of {pattern!r}",
            code="unknown_row",
            hint=nearest(pattern, subjects) or f"it has results of {', '.join(subjects)}",
        )
    return chosen
