"""Writes the answers of a bench in WMB-100K's format, and the record of what it lost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from memconform.bench.records import BenchReport, QueryRecord
from memconform.bench.wmb.records import LostQuestion, WmbIndex, WmbRun
from memconform.bench.wmb.stored_answers import run_record_of
from memconform.datasets.wmb import question_of
from memconform.datasets.wmb_answers import NO_RESULT, ORIGIN, RowOrigin, answers_digest
from memconform.datasets.wmb_names import Part
from memconform.errors import ExitCode, gravest
from memconform.storage.provenance import HostOrigin
from memconform.storage.result_file import read_lines
from memconform.storage.sink import Sink, replacing

ANSWERS = "answers.json"
"""The answers in the folder of a run."""


def answer_row(record: QueryRecord, origin: RowOrigin) -> dict[str, Any]:
    """The row of a measured query; milliseconds are whole, rounded down as the template does."""
    memories = record.memories or []
    row: dict[str, Any] = {
        "question_id": record.query,
        "memories_returned": memories,
        "system_response": " ".join(memories) if memories else NO_RESULT,
        ORIGIN: origin.row(),
    }
    # 0 would be the best speed.
    return row if record.latency_ms is None else row | {"latency_ms": int(record.latency_ms)}


def write_answers(
    answers: Path,
    report: BenchReport,
    result: Path,
    *,
    searches: Iterable[str],
    questions: Iterable[str],
    parts: Part,
    index: WmbIndex = "isolated",
) -> WmbRun:
    """Write `answers.json` from the result of a bench, and its record beside it.

    A query that was not measured has no row: an empty answer would be one that the system gave.

    Args:
        answers: the file to write.
        report: of a bench of one system and one strategy whose unit is a memory.
        result: the bench's result file.
        searches: ids of the selected searches; a question may have two (`question_of`).
        questions: ids of all questions, in the order of the benchmark.
        parts: the parts that were asked.
        index: what the system indexed together.

    Raises:
        ResultsError: if a file cannot be written (`results_unwritable`).
    """
    measured: dict[str, None] = {}
    lost: dict[str, LostQuestion] = {}
    selected = Counter(map(question_of, searches))
    origin = RowOrigin(report.run_id, parts, len(selected))
    with replacing(answers) as sink:
        _write_array(
            sink, map(partial(answer_row, origin=origin), _rows(result, selected, measured, lost))
        )
    [row] = report.rows
    [system] = report.systems
    reason = system.incident.code if system.incident else "index_not_proven"
    for name in selected:
        if name not in measured and name not in lost:
            lost[name] = LostQuestion(question=name, code=reason, message="it was not asked")
    run = WmbRun(
        **{name: getattr(report, name) for name in HostOrigin.model_fields},
        run_id=report.run_id,
        started_at=report.started_at,
        exit_code=gravest([ExitCode(report.exit_code), *[ExitCode.DAEMON] * bool(lost)]),
        system=row.system,
        strategy=row.strategy,
        parts=parts,
        index=index,
        k=max(report.settings.ks),
        answers_sha256=answers_digest(answers),
        rows=len(measured),
        lost=list(lost.values()),
        not_asked=[name for name in questions if name not in measured and name not in lost],
        documents=system.documents,
        ingest_s=system.ingest_s,
        latency_ms=row.latency.answer if row.latency else None,
        incident=system.incident,
    )
    with replacing(run_record_of(answers)) as sink:
        sink.write_json(run)
    return run


def write_merged_answers(
    answers: Path, runs: Sequence[WmbRun], report: BenchReport, result: Path
) -> WmbRun:
    """Write the answers of the runs of all shards, whose benches are joined in `report`.

    Raises:
        ResultsError: as `write_answers`.
    """
    searched = [QueryRecord.model_validate_json(line).query for line in read_lines(result)]
    # Named once more, a question that lost one of its two searches waits for it in vain.
    searched += [lost.question for run in runs for lost in run.lost]
    first = runs[0]
    return write_answers(
        answers,
        report,
        result,
        searches=searched,
        questions=first.not_asked,
        parts=first.parts,
        index=first.index,
    )


def _rows(
    result: Path,
    searches: Mapping[str, int],
    measured: dict[str, None],
    lost: dict[str, LostQuestion],
) -> Iterator[QueryRecord]:
    """Yield the measured questions, and fill `measured` and `lost`.

    A question that is searched in two indexes is measured if both searches are; it has the memories
    of both, each once, and their latencies together, as with the benchmark's template.
    """
    first: dict[str, QueryRecord] = {}
    for line in read_lines(result):
        record = QueryRecord.model_validate_json(line)
        name = question_of(record.query)
        if record.error is not None:
            lost[name] = LostQuestion(
                question=name, code=record.error.code, message=record.error.message
            )
        elif record.redacted:
            lost[name] = LostQuestion(
                question=name,
                code="redacted",
                message="its memories contain a secret of the environment, which results mask",
            )
        elif searches[name] > 1 and name not in first:
            first[name] = record
        elif name not in lost:
            measured[name] = None
            yield _together(first.pop(name), record) if name in first else record


def _together(first: QueryRecord, second: QueryRecord) -> QueryRecord:
    """The measurement of a question that was searched in two indexes."""
    latencies = first.latency_ms, second.latency_ms
    memories = dict.fromkeys((*(first.memories or ()), *(second.memories or ())))
    return first.model_copy(
        update={
            "query": question_of(first.query),
            "memories": list(memories),
            "latency_ms": None if None in latencies else sum(filter(None, latencies)),
        }
    )


def _write_array(sink: Sink, rows: Iterable[dict[str, Any]]) -> None:
    separator = "[\n"
    for row in rows:
        sink.write_text(separator)
        sink.write_json(row, indent=None, end="")
        separator = ",\n"
    sink.write_text("\n]\n" if separator == ",\n" else "[]\n")
