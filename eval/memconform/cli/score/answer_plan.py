"""From the flags of `score` for a bench to the questions, the arms and the reader's settings."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from memconform.bench.answering.arms import CONTROLS, Control
from memconform.bench.answering.plan import AnswerTask, Arm
from memconform.bench.answering.records import ReaderSettings
from memconform.bench.stored_rows import StoredRow
from memconform.bench.tasks import ALL
from memconform.cli.score.command import AnswerOptions
from memconform.cli.values import comma_separated
from memconform.datasets.answer_keys import AnswerKey, Suite
from memconform.datasets.question import Question
from memconform.datasets.selection import expect_known
from memconform.errors import NothingSelectedError, UsageError
from memconform.llm.prices import ModelTraits
from memconform.llm.records import ModelSettings
from memconform.printing.commands import resume_command
from memconform.scoring.reader.official_prompts import OfficialWording, read_script_texts
from memconform.scoring.reader.prompts import OwnWording, Wording

_RESERVED_TOKENS = 4_000
"""Part of the context window kept for instructions, question and answer."""
_NO_ARMS = "none"


def suite_of(rows: Sequence[StoredRow]) -> Suite:
    """The benchmark that all rows are of.

    Raises:
        UsageError: if it has no conversations (`bad_option`), or rows are of other questions, data
            or levels (`unlike_runs`).
    """
    first = rows[0]
    suite = first.report.settings.format
    if suite not in ("longmemeval", "locomo"):
        raise UsageError(
            f"{first.path} is a bench of {suite}, whose questions have no conversations to read",
            code="bad_option",
            hint="give a result of `bench --suite longmemeval` or `bench --suite locomo`",
        )
    for row in rows[1:]:
        ours, theirs = _asked_of(first), _asked_of(row)
        if differing := [name for name in ours if ours[name] != theirs[name]]:
            raise UsageError(
                f"{first.name} and {row.name} differ in {', '.join(differing)}",
                code="unlike_runs",
                hint="give results of one benchmark, level and selection of questions",
            )
    return cast("Suite", suite)


def _asked_of(row: StoredRow) -> dict[str, str]:
    settings = row.report.settings
    return {
        "the benchmark's file": row.report.source.sha256,
        "the level of the items": settings.options["level"],
        "the questions": settings.chosen_sha256,
    }


def require_ranks(rows: Sequence[StoredRow], top_k: int) -> None:
    """Raise UsageError (`bad_option`) if a bench recorded shorter rankings than are to be shown."""
    for row in rows:
        if top_k > (most := max(row.report.settings.ks)):
            raise UsageError(
                f"{row.path} has the first {most} items of each ranking, not {top_k}",
                code="bad_option",
                hint=f"use --top-k {most}, or bench with --top-k {top_k}",
            )


def require_same_data(key: AnswerKey, rows: Sequence[StoredRow]) -> None:
    """Raise UsageError (`unlike_runs`) if the rankings are of another file."""
    expected = rows[0].report.source.sha256
    if key.sha256 != expected:
        raise UsageError(
            f"{key.path} is not the file that the bench read: its SHA-256 is {key.sha256[:12]}…,"
            f" not {expected[:12]}…",
            code="unlike_runs",
            hint="give the file that the bench read as --data",
        )


def arms_of(
    names: Sequence[str], rows: Sequence[StoredRow], *, strip_reasoning: bool = False
) -> list[Arm]:
    """The systems, then the controls in the order in which they are named.

    Answers of the daemons' own readers lose their blocks of reasoning with `strip_reasoning`.

    Raises:
        UsageError: for a control that does not exist (`unknown_arm`), or is named twice
            (`bad_option`).
    """
    chosen = [name.strip() for name in comma_separated(names)]
    if not chosen:
        raise UsageError(
            "--arms names no arm", code="bad_option", hint="write --arms none for the systems alone"
        )
    chosen = [] if chosen == [_NO_ARMS] else chosen
    expect_known(
        chosen, CONTROLS, "there is no arm", f"use {', '.join(CONTROLS)}", code="unknown_arm"
    )
    for name in chosen:
        if chosen.count(name) > 1:
            raise UsageError(
                f"arm {name} was given twice", code="bad_option", hint="name each arm once"
            )
    # A bench may have baselines of the same names.
    systems = [
        Arm(f"{row.name} (bench)" if row.name in CONTROLS else row.name, row=row) for row in rows
    ]
    daemons = [
        replace(
            arm,
            name=f"{arm.name} /ask",
            is_daemons_own=True,
            strip_reasoning=strip_reasoning,
        )
        for arm in systems
        if arm.row is not None and _has_answers(arm.row)
    ]
    return [*systems, *daemons, *(Arm(name, control=cast("Control", name)) for name in chosen)]


def _has_answers(row: StoredRow) -> bool:
    """Whether the bench had the daemon's own reader answer."""
    return any(
        record.answer is not None or record.answer_error is not None
        for record in row.records.values()
    )


def tasks_of(rows: Sequence[StoredRow], key: AnswerKey) -> list[AnswerTask]:
    """The questions of the bench, with their gold as the bench has it.

    Questions that no row reached are absent from a result; those of the first row that has them
    all are taken.

    Raises:
        NothingSelectedError: if there is none (`nothing_selected`).
        UsageError: if a row has other questions than the others (`unlike_runs`).
    """
    longest = max(rows, key=lambda row: len(row.records))
    for row in rows:
        if strange := [name for name in row.records if name not in longest.records]:
            raise UsageError(
                f"{row.name} has {strange[0]}, which {longest.name} does not have",
                code="unlike_runs",
                hint="give results of the same questions",
            )
    if len(longest.records) < longest.row.queries:
        raise UsageError(
            f"{longest.path} has {len(longest.records)} of {longest.row.queries} queries: the bench"
            " was interrupted",
            code="result_incomplete",
            hint=f"finish it: {resume_command(longest.report.command, longest.report.run_id)}",
        )
    tasks = [
        AnswerTask(key.questions[name], record.haystack, _gold(rows, name, key.questions[name]))
        for name, record in longest.records.items()
        if name in key.questions
    ]
    if not tasks:
        raise NothingSelectedError(
            f"{longest.path} has no question of {key.path}",
            code="nothing_selected",
            hint="give the file that the bench read as --data",
        )
    return tasks


def _gold(rows: Sequence[StoredRow], name: str, question: Question) -> tuple[str, ...]:
    """The gold of a question at the level of the bench; else the sessions that the file names.

    A bench keeps no gold for queries that failed, nor for those whose gold no item has: turns of
    the assistant are no items of LongMemEval.
    """
    for row in rows:
        record = row.measured(name)
        if record is not None and ALL in record.views:
            return tuple(record.views[ALL].gold)
    return question.gold


def wording_of(options: AnswerOptions, suite: Suite) -> Wording:
    """The reader's prompts.

    Raises:
        UsageError: `bad_option` for flags that exclude each other, and as `read_script_texts`.
    """
    if (options.prompts == "official") != (options.script is not None):
        raise UsageError(
            "--prompts official requires --script, and --script requires --prompts official",
            code="bad_option",
            hint="give the authors' src/generation/run_generation.py as --script",
        )
    if options.script is None:
        return OwnWording(options.method, options.history)
    if suite != "longmemeval":
        raise UsageError(
            "--prompts official are those of LongMemEval",
            code="bad_option",
            hint="use --prompts own",
        )
    if options.method == "con-separate" and options.history == "text":
        raise UsageError(
            "the authors' script writes notes as JSON only",
            code="bad_option",
            hint="use --history json with --method con-separate",
        )
    return OfficialWording(read_script_texts(options.script), options.method, options.history)


def reader_settings(
    options: AnswerOptions, level: str, model: ModelSettings, wording: Wording, traits: ModelTraits
) -> ReaderSettings:
    """What decides the answers, besides what was retrieved.

    Raises:
        UsageError: if the model's context window is not known (`context_unknown`).
    """
    context = options.context_tokens or traits.context_tokens
    if context is None:
        raise UsageError(
            f"the context window of {model.model} is not known",
            code="context_unknown",
            hint="give it as --context-tokens N; a server that cuts prompts would answer from less",
        )
    if level == "session" and options.unit not in (None, "session"):
        raise UsageError(
            "the bench retrieved sessions, which are shown whole",
            code="bad_option",
            hint="omit --unit, or bench with --level turn",
        )
    official = wording.name == "official"
    return ReaderSettings(
        model=model,
        prompts=wording.name,
        prompt=wording.digest(),
        method=options.method,
        history=options.history,
        speakers=options.speakers,
        unit=options.unit or ("session" if level == "session" else "round"),
        top_k=options.top_k,
        context_tokens=context,
        budget_tokens=None if official else max(1, context - _RESERVED_TOKENS),
        seed=options.seed,
    )
