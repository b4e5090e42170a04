"""Writes the answers of a bench in WMB-100K's format, and the record of what it lost."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from memconform.bench.records import BenchReport, QueryRecord
from memconform.bench.wmb.plan import run_record_of
from memconform.bench.wmb.records import LostQuestion, WmbRun
from memconform.datasets.wmb_answers import NO_RESULT, answers_digest
from memconform.datasets.wmb_names import Part
from memconform.storage.provenance import HostOrigin
from memconform.storage.result_file import read_lines
from memconform.storage.writing import Sink, replacing


def answer_row(record: QueryRecord) -> dict[str, Any]:
    """The row of a measured query; milliseconds are whole, rounded down as the template does."""
    memories = record.memories or []
    row = {
        "question_id": record.query,
        "memories_returned": memories,
        "system_response": " ".join(memories) if memories else NO_RESULT,
    }
    # 0 would be the best speed.
    return row if record.latency_ms is None else row | {"latency_ms": int(record.latency_ms)}


def write_answers(
    answers: Path,
    report: BenchReport,
    result: Path,
    *,
    asked: Iterable[str],
    questions: Iterable[str],
    parts: Part,
) -> WmbRun:
    """Write `answers.json` from the result of a bench, and its record beside it.

    A query that was not measured has no row: an empty answer would be one that the system gave.

    Args:
        answers: the file to write.
        report: of a bench of one system and one strategy whose unit is a memory.
        result: the bench's result file.
        asked: ids of the selected questions.
        questions: ids of all questions, in the order of the benchmark.
        parts: the parts that were asked.

    Raises:
        ResultsError: if a file cannot be written (`results_unwritable`).
    """
    measured: dict[str, None] = {}
    lost: dict[str, LostQuestion] = {}
    with replacing(answers) as sink:
        _write_array(sink, _rows(result, measured, lost))
    [row] = report.rows
    [system] = report.systems
    reason = system.incident.code if system.incident else "index_not_proven"
    for name in asked:
        if name not in measured and name not in lost:
            lost[name] = LostQuestion(question=name, code=reason, message="it was not asked")
    run = WmbRun(
        **{name: getattr(report, name) for name in HostOrigin.model_fields},
        run_id=report.run_id,
        started_at=report.started_at,
        exit_code=report.exit_code,
        system=row.system,
        strategy=row.strategy,
        parts=parts,
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


def _rows(
    result: Path, measured: dict[str, None], lost: dict[str, LostQuestion]
) -> Iterator[dict[str, Any]]:
    for line in read_lines(result):
        record = QueryRecord.model_validate_json(line)
        if record.error is None:
            measured[record.query] = None
            yield answer_row(record)
        else:
            lost[record.query] = LostQuestion(
                question=record.query, code=record.error.code, message=record.error.message
            )


def _write_array(sink: Sink, rows: Iterable[dict[str, Any]]) -> None:
    separator = "[\n"
    for row in rows:
        sink.write_text(separator)
        sink.write_json(row, indent=None, end="")
        separator = ",\n"
    sink.write_text("\n]\n" if separator == ",\n" else "[]\n")
