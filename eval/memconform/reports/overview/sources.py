"""Finds result files and reads those of one file each: whichever verb wrote them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from memconform.bench.records import BENCH_SCHEMA, BenchReport
from memconform.bench.stored_rows import load_rows, read_report
from memconform.bench.wmb.records import SCORE_SCHEMA, WmbScore
from memconform.conformance.mutation.results import MUTATION_SCHEMA, Fate, MutationReport
from memconform.conformance.results import CONFORM_SCHEMA, ConformReport
from memconform.errors import UsageError
from memconform.fuzzing.results import FUZZ_SCHEMA, FuzzReport
from memconform.load.records import LOAD_SCHEMA, LoadReport
from memconform.records import SkipRecord
from memconform.replay.records import PARITY_SCHEMA as LME_PARITY_SCHEMA
from memconform.replay.records import RESULT_SCHEMA as LME_SCHEMA
from memconform.replay.records import LmeParity, LmeResult
from memconform.reports.machine import REPORT_SCHEMA
from memconform.results.records import PARITY_SCHEMA, ParityReport
from memconform.results.references import SCORED, WITH_LINES, load_results
from memconform.runs.results import RESULT_SCHEMA
from memconform.storage.folders import (
    ROW_MARK,
    find_result,
    result_files,
    results_below,
    split_reference,
)
from memconform.storage.result_file import has_lines, read_head, require_result_of_run, schema_of
from memconform.validation_faults import first_fault

ONE_DOCUMENT: dict[str, type[BaseModel]] = {
    BENCH_SCHEMA: BenchReport,
    CONFORM_SCHEMA: ConformReport,
    FUZZ_SCHEMA: FuzzReport,
    LME_PARITY_SCHEMA: LmeParity,
    LME_SCHEMA: LmeResult,
    LOAD_SCHEMA: LoadReport,
    MUTATION_SCHEMA: MutationReport,
    PARITY_SCHEMA: ParityReport,
    SCORE_SCHEMA: WmbScore,
}
"""Reports that are read whole; a run's questions are streamed instead."""

SHOWN = frozenset((RESULT_SCHEMA, REPORT_SCHEMA, *SCORED, *ONE_DOCUMENT))


@dataclass(frozen=True, slots=True)
class Source:
    """A file and the schema that it declares."""

    path: Path
    schema: str
    named: bool = True
    """False for a file that was found in a named folder."""
    pattern: str = ""
    """SUBJECT in `RESULT#SUBJECT`; empty for all subjects."""


def find_sources(references: Sequence[str], output: Path) -> list[Source]:
    """Resolve references to result files, in order, each file once.

    Args:
        references: a result file, a run's folder, a run id, or a folder of results, all of whose
            results are taken.
        output: the folder in which run ids are looked up.

    Raises:
        UsageError: if there is no such result (`unknown_run`), a named file is not one that a
            report can show (`result_unreadable`), or a folder has none (`unknown_run`).
    """
    sources: dict[Path, Source] = {}
    for reference in references:
        for source in _resolve(reference, output):
            sources.setdefault(source.path.resolve(), source)
    return list(sources.values())


def _resolve(reference: str, output: Path) -> list[Source]:
    name, pattern = split_reference(reference)
    path = Path(name)
    if not path.is_dir() and (output / "runs" / name).is_dir():
        path = output / "runs" / name
    if pattern and result_files(path):
        return [_named(run.path, "") for run in load_results([reference], output)]
    if not path.is_dir() or pattern:
        return [_named(find_result(output, name), pattern)]
    sources = list(_below(path))
    if not sources:
        require_result_of_run(*sorted(path.glob("*.json")))
        raise UsageError(
            f"{path} contains no result",
            code="unknown_run",
            hint="give a result file, a run's folder or id, or a folder that `--output` named",
        )
    return sources


def _below(folder: Path) -> Iterator[Source]:
    """The results of a folder at any depth; files of other kinds are passed over."""
    for path in results_below(folder):
        # A pipe would be waited for, and a device read without end.
        if not path.is_file():
            continue
        try:
            schema = schema_of(path)
        except (ValueError, OSError, RecursionError):
            continue
        # The file of `answer --json` has no answers; the run's folder has them.
        if schema in ONE_DOCUMENT or (
            schema in SHOWN and (schema not in WITH_LINES or has_lines(path))
        ):
            yield Source(path, schema, named=False)


def _named(path: Path, pattern: str) -> Source:
    try:
        schema = schema_of(path)
    except (ValueError, OSError, RecursionError) as error:
        raise unreadable(path, str(error)) from error
    if schema not in SHOWN:
        require_result_of_run(path)
        raise unreadable(path, f"its schema is {schema}")
    if pattern and schema not in (*SCORED, BENCH_SCHEMA):
        raise UsageError(
            f"{path} is shown whole",
            code="unknown_row",
            hint="give the result without #; results of bench, score and lme have parts",
        )
    return Source(path, schema, pattern=pattern)


def read_document(source: Source) -> BaseModel:
    """Read a report of one document.

    Raises:
        UsageError: if it does not fit its schema (`result_unreadable`).
    """
    if source.schema == BENCH_SCHEMA:
        # The result in a run's folder has its queries behind it.
        return _rows_of(source) if source.pattern else read_report(source.path)
    try:
        content = source.path.read_bytes()
        if source.schema == SCORE_SCHEMA and has_lines(source.path):
            # The result in a run's folder has its verdicts behind it.
            content = read_head(source.path).encode()
        document = ONE_DOCUMENT[source.schema].model_validate_json(content)
    except ValidationError as error:
        raise unreadable(source.path, first_fault(error)) from error
    except OSError as error:
        raise unreadable(source.path, str(error)) from error
    if isinstance(document, ConformReport):
        return _of_client(document.from_here(source.path.parent))
    if isinstance(document, MutationReport):
        killed = sum(mutant.fate is Fate.KILLED for mutant in document.mutants)
        if (document.killed, document.total) != (killed, len(document.mutants)):
            raise unreadable(
                source.path,
                f"killed is {document.killed} of {document.total}, but its mutants give {killed}"
                f" of {len(document.mutants)}",
            )
    return document


def _rows_of(source: Source) -> BenchReport:
    """The report of a bench with the rows that its pattern selects, which are compared no more."""
    stored = load_rows([f"{source.path}{ROW_MARK}{source.pattern}"], source.path.parent)
    report, rows = stored[0].report, [each.row for each in stored]
    systems = [each for each in report.systems if any(each.name == row.system for row in rows)]
    return report.model_copy(update={"rows": rows, "systems": systems, "alike": [], "parity": []})


class RunReportParts(BaseModel, defer_build=True):
    """What is needed of a report of `run --json`; its runs are read as results are."""

    runs: list[dict[str, Any]]
    skipped: list[SkipRecord] = Field(default_factory=list)


def read_run_report(source: Source) -> RunReportParts:
    """Read a report of `run --json`.

    Raises:
        UsageError: if it is no such report (`result_unreadable`).
    """
    try:
        return RunReportParts.model_validate_json(source.path.read_bytes())
    except ValidationError as error:
        raise unreadable(source.path, first_fault(error)) from error
    except OSError as error:
        raise unreadable(source.path, str(error)) from error


def unreadable(path: Path, excerpt: str) -> UsageError:
    """The error for a file that a report cannot show."""
    return UsageError(
        f"{path} is not a result that a report can show",
        code="result_unreadable",
        hint="give results of run, bench, score, lme, load, conform, mutate, fuzz or parity",
        excerpt=excerpt,
    )


def _of_client(report: ConformReport) -> ConformReport:
    """The report of clients under names of their own: an SDK's daemon may be shown beside it."""
    if report.suite != "client":
        return report
    sdks = [sdk.model_copy(update={"sdk": f"{sdk.sdk}'s client"}) for sdk in report.sdks]
    return report.model_copy(update={"sdks": sdks})
