"""Executes `lme arbitrate`."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from memconform.cli.lme.arbitrate import ArbitrateOptions
from memconform.cli.output_files import json_target, text_target
from memconform.errors import ExitCode, UsageError
from memconform.printing.escaping import Lines, indent
from memconform.printing.output import echo
from memconform.printing.plurals import plural
from memconform.replay.arbitration import ArbitrationChoice, arbitrate, choose
from memconform.replay.arbitration_csv import read_csv, write_csv
from memconform.replay.overrides import (
    Override,
    PersonVerdict,
    add_overrides,
    answer_digest,
    overrides_file,
    read_overrides,
)
from memconform.replay.records import LmeQuestion, LmeResult
from memconform.replay.stored_results import find_result_file, read_lme_result
from memconform.reports.lme_arbitration import arbitration_banner, show_arbitration

_KEYS: dict[str, PersonVerdict] = {"c": "correct", "i": "incorrect"}
_PROMPT = "c correct, i incorrect, s skip, q quit; a note may follow the letter: "


def run(options: ArbitrateOptions) -> ExitCode:
    """Collect a person's verdicts, and report what they say about the judge.

    Raises:
        MemconformError: if the result, its overrides or the CSV file cannot be read, or nothing
            is selected.
    """
    path = find_result_file(options.result)
    result = read_lme_result(path)
    file = overrides_file(path)
    by = options.by.strip()
    choice = ArbitrationChoice(options.only, options.sample, options.seed)
    _require_apart(options, path, file)
    overrides = read_overrides(file, result)
    chosen = choose(result, choice)
    if options.export is not None:
        with text_target(options.export) as target:
            write_csv(chosen, target)
        echo(f"{plural(len(chosen), 'answer')} written: {choice}", err=options.export == "-")
        return ExitCode.OK
    if options.imported is not None:
        verdicts = read_csv(options.imported, result.questions)
        made = [_override(result, each.question, each.verdict, each.note, by) for each in verdicts]
        added = add_overrides(file, overrides, made)
        echo(f"{plural(added, 'new verdict')} of {len(made)} in {options.imported}", err=True)
    elif by:
        _ask(file, result, [each for each in chosen if each.id not in overrides], by)
    overrides = read_overrides(file, result)
    report = arbitrate(path, result, overrides, choice)
    if not options.quiet:
        show_arbitration(report)
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    echo(arbitration_banner(report), err=options.json_file == "-")
    return ExitCode(report.exit_code)


def _require_apart(options: ArbitrateOptions, *inputs: Path) -> None:
    """Check that no output replaces the result, its overrides, or a table that somebody fills in.

    Raises:
        UsageError: naming the file (`bad_export`).
    """
    targets = [Path(name) for name in (options.export, options.json_file) if name and name != "-"]
    kept = {file.resolve() for file in (*inputs, *filter(None, [options.imported]))}
    for target in targets:
        is_table = str(target) == options.export and target.is_file()
        if is_table or target.resolve() in kept:
            raise UsageError(
                f"{target} exists, and would be replaced",
                code="bad_export",
                hint="name a new file; a table that was filled in is read by --import",
            )


def _override(
    result: LmeResult, question: LmeQuestion, verdict: PersonVerdict, note: str, by: str
) -> Override:
    return Override(
        sdk=result.sdk,
        question=question.id,
        answer_sha256=answer_digest(question),
        judge=question.judge_verdict,
        verdict=verdict,
        note=note,
        by=by,
        at=datetime.now(UTC),
    )


def _ask(file: Path, result: LmeResult, questions: Sequence[LmeQuestion], by: str) -> None:
    """Show one answer after the other; each verdict is on disk before the next is asked."""
    for number, question in enumerate(questions, 1):
        click.clear()
        echo(f"{number} of {len(questions)}: {question.id} ({question.category})", err=True)
        for name, text in (
            ("question", _asked(question)),
            ("reference", "\n".join(question.reference_answers)),
            ("answer", question.answer or ""),
            (f"judge: {question.judge_verdict}", question.reason or question.code),
        ):
            echo(Lines(f"{name}\n{indent(text, '  | ')}"), err=True)
        key, note = _key()
        if key == "q":
            return
        if key in _KEYS:
            add_overrides(file, {}, [_override(result, question, _KEYS[key], note, by)])


def _asked(question: LmeQuestion) -> str:
    date = f" ({question.question_date})" if question.question_date else ""
    return f"{question.question}{date}"


def _key() -> tuple[str, str]:
    """The next key and note; the end of the input is the key to quit."""
    while True:
        echo(_PROMPT, err=True)
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            echo("the line is not UTF-8", err=True)
            continue
        if not line:
            return "q", ""
        key, _, note = line.strip().partition(" ")
        if key.lower() in {*_KEYS, "s", "q"}:
            return key.lower(), note.strip()
        echo(f"{key!r} is none of these keys", err=True)
