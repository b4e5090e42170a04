"""`memconform score`: the flags of every kind of RESULT, each of them declared once."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial as bind
from pathlib import Path
from typing import Any, Literal, get_args

import click

from memconform.bench.answering.arms import CONTROLS
from memconform.cli import options as given
from memconform.cli.commands import (
    FOLDER,
    REFERENCE,
    SCORING,
    Command,
    PathType,
    option,
    reject_other_flags,
)
from memconform.cli.judge_options import (
    ANSWERS,
    JUDGE,
    WHAT,
    JudgeFlags,
    PanelFlags,
    call_options,
    errata,
    judge_options,
    partial,
)
from memconform.cli.lazy import carry_out
from memconform.cli.options import (
    floors,
    json_file,
    output,
    quiet,
    schema,
    scorer,
    strip_reasoning,
    writable,
)
from memconform.cli.result_kinds import scored_kind
from memconform.errors import ExitCode
from memconform.scoring.reader.names import HistoryFormat, Method, Speakers, Unit

RUBRICS = ("lenient", "longmemeval", "strict")
_RUN = f"A run: {SCORING.lower()}"
_BENCH = "A bench: the reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreOptions(JudgeFlags):
    """How the answers of a run are scored again. Names are those of the flags."""

    result: str
    data: str | None
    scorer: str | None
    floor: tuple[str, ...]
    output: Path
    json_file: str | None
    quiet: bool
    strip_reasoning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions(PanelFlags):
    """How the questions of a bench are answered."""

    results: tuple[str, ...]
    data: str | None
    arms: tuple[str, ...]
    top_k: int
    errata: str | None
    reader: str
    method: Method
    history: HistoryFormat
    speakers: Speakers
    unit: Unit | None
    context_tokens: int | None
    seed: int
    prompts: Literal["own", "official"]
    script: Path | None
    rubric: str | None
    hypotheses: Path | None
    output: Path
    json_file: str | None
    quiet: bool
    strip_reasoning: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class QaOptions(PanelFlags):
    """How stored answers to LongMemEval or LoCoMo are scored."""

    suite: Literal["longmemeval", "locomo"]
    answers: Path
    data: str
    partial: bool
    errata: str | None
    rubric: str | None
    resume: str | None
    output: Path
    json_file: str | None
    quiet: bool
    strip_reasoning: bool
    prediction: str | None = None
    prompts: Literal["own", "official"] = "own"
    script: Path | None = None
    log: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WmbScoreOptions(PanelFlags):
    """How stored answers to WMB-100K are scored."""

    answers: Path
    data: str
    official: bool
    errata: str | None
    profile: Literal["readme", "script", "both"]
    prompts: Literal["own", "official"]
    script: Path | None
    resume: str | None
    output: Path
    json_file: str | None
    quiet: bool


data = given.data(
    WHAT,
    "The questions. A run: another version of its dataset, with the same ids in their order."
    " A bench: its file, if that has moved. A file of answers: the benchmark, as a path or the name"
    " of a fetched source.",
    show_default="those of the RESULT",
)
reader = given.reader(
    _BENCH,
    "Model that answers, which a bench requires: provider:model (openai, anthropic, gemini,"
    " ollama), or `fake`, which quotes a sentence offline.",
)
arms = option(
    "--arms",
    group=_BENCH,
    multiple=True,
    metavar="NAMES",
    default=(",".join(CONTROLS),),
    show_default=",".join(CONTROLS),
    help="Control arms to run beside the systems, separated by commas: "
    + "; ".join(f"{name} ({about})" for name, about in CONTROLS.items())
    + "; or none.",
)
top_k = given.top_k(
    _BENCH,
    "Retrieved items that the reader is shown; at most the largest k of the bench.",
    default=10,
)
method = option(
    "--method",
    group=_BENCH,
    type=click.Choice(get_args(Method)),
    default="direct",
    help="Answer at once; after notes (chain of note); or from notes on each passage, taken in"
    " calls of their own.",
)
history = option(
    "--history",
    group=_BENCH,
    type=click.Choice(get_args(HistoryFormat)),
    default="text",
    help="How passages are written.",
)
speakers = option(
    "--speakers",
    group=_BENCH,
    type=click.Choice(get_args(Speakers)),
    default="all",
    help="Whose turns the reader is shown.",
)
unit = option(
    "--unit",
    group=_BENCH,
    type=click.Choice(get_args(Unit)),
    show_default="session for sessions, round for turns",
    help="What is shown of a retrieved turn: the turn, the turn with the next one, or its session.",
)
context_tokens = option(
    "--context-tokens",
    group=_BENCH,
    type=click.IntRange(4_096, 1_000_000_000),
    metavar="N",
    show_default="the model's, from the table of prices",
    help="Context window of the reader, at four bytes a token. Passages are added in the order of"
    " the ranking; one that does not fit is skipped and counted.",
)
seed = option(
    "--seed",
    group=_BENCH,
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Seed of the arm random-k.",
)
hypotheses = option(
    "--hypotheses",
    group=_BENCH,
    type=FOLDER,
    metavar="DIR",
    help="Also write the answers of each arm to DIR/ARM.jsonl, which score takes as a RESULT, and"
    " the authors' evaluate_qa.py.",
)
prediction = option(
    "--prediction",
    group=ANSWERS,
    metavar="NAME",
    help="LoCoMo: score the key NAME_prediction of a file that its own code wrote with several.",
)
log = option(
    "--log",
    group=ANSWERS,
    metavar="FILE",
    callback=writable,
    help="LongMemEval: also write the labels of its rubric to FILE, as evaluate_qa.py does; - is"
    " standard output.",
)
profile = option(
    "--profile",
    group=ANSWERS,
    type=click.Choice(["readme", "script", "both"]),
    default="both",
    help="WMB-100K: the rules that the benchmark states (`readme`), or what its score.py computes.",
)
official = option(
    "--official",
    group=ANSWERS,
    is_flag=True,
    help="WMB-100K: ask its own panel (gpt-4o-mini, Claude Haiku 4.5, Gemini 2.0 Flash); two of the"
    " three must agree.",
)
resume = given.resume(
    ANSWERS, "Continue an interrupted scoring: what it judged is not asked again."
)
rubric = option(
    "--rubric",
    group=JUDGE,
    metavar="NAMES",
    show_default="of a bench, longmemeval for LongMemEval and strict for LoCoMo",
    help=f"What counts as right: {', '.join(RUBRICS)}; for a file of answers several, separated by"
    " commas. `locomo` and `wmb` say that the file answers these benchmarks: LoCoMo's F1 and"
    " BLEU-1, with `strict` if a --judge is given; the rules of WMB-100K. Any other file answers"
    " LongMemEval.",
)
prompts = option(
    "--prompts",
    group=JUDGE,
    type=click.Choice(["own", "official"]),
    default="own",
    help="Wording, of the reader for a bench, of the judge for a file of answers to LongMemEval or"
    " WMB-100K: memconform's, or that of the authors (--script), which cuts nothing.",
)
script = option(
    "--script",
    group=JUDGE,
    type=PathType(),
    metavar="FILE",
    help="The authors' program from which --prompts official reads its texts, and which is not"
    " executed: LongMemEval's run_generation.py for a bench and evaluate_qa.py for answers,"
    " WMB-100K's score.py.",
)

_KINDS: Mapping[str, tuple[str, type, frozenset[str]]] = {
    "run": ("a run", RescoreOptions, frozenset()),
    "bench": ("a bench", AnswerOptions, frozenset()),
    "longmemeval": ("answers to LongMemEval", QaOptions, frozenset({"prediction"})),
    "locomo": ("answers to LoCoMo", QaOptions, frozenset({"prompts", "script", "log"})),
    "wmb": ("answers to WMB-100K", WmbScoreOptions, frozenset()),
}
"""Kinds of RESULT: the name, the flags by the fields of their options, and those without effect."""


@click.command(
    "score",
    cls=Command,
    examples=(
        "memconform score RUN --scorer judge --judge fake",
        "memconform score BENCH-RUN#go/hybrid --reader gpt-4o --max-cost-usd 20",
        "memconform score answers.jsonl --rubric longmemeval --data longmemeval_oracle",
    ),
    exit_codes={
        ExitCode.FAILED: "below a floor of a run",
        ExitCode.DAEMON: "too little was measured: a question was not answered or not judged",
        ExitCode.NOTHING_SELECTED: "no question to score",
        ExitCode.BUDGET: "the budget is spent; repeat the command, for a file with --resume",
    },
)
@click.argument("results", type=REFERENCE, nargs=-1, required=True, metavar="RESULT...")
@data
@strip_reasoning(WHAT)
@errata
@bind(scorer, group=_RUN)(unless_given="that of the run")
@bind(floors, group=_RUN)(unless_given="those of the run")
@reader
@arms
@top_k
@method
@history
@speakers
@unit
@context_tokens
@seed
@hypotheses
@partial
@prediction
@log
@profile
@official
@resume
@bind(judge_options, group=_RUN, judge="JB_EVAL_JUDGE_MODEL, or gpt-4o; gpt-4o-mini for WMB-100K")
@rubric
@prompts
@script
@call_options
@output
@json_file
@schema(
    "reports.machine:RunReport",
    "bench.answering.records:AnswerReport",
    "bench.qa.records:QaReport",
    "bench.wmb.records:WmbScore",
)
@quiet
@click.pass_context
def command(context: click.Context, /, results: tuple[str, ...], **flags: Any) -> ExitCode:  # noqa: ANN401 - one value a flag
    """Score stored answers, or answer what a bench retrieved, without a daemon.

    RESULT is a run, whose answers are scored again; benches of LongMemEval or LoCoMo, whose
    questions one --reader answers from what each system retrieved; or a file of answers to the
    benchmark that --rubric names. The results themselves are not changed.
    """
    kind: str = scored_kind(results, flags["output"])
    applicable = {"results"}
    if kind == "file":
        kind, flags["rubric"] = _suite_of(context, flags["rubric"])
        applicable |= {"rubric"}
    name, options, without_effect = _KINDS[kind]
    values = {field.name for field in fields(options)} - without_effect
    reject_other_flags(context, name, applicable | values)
    chosen = {key: value for key, value in flags.items() if key in values}
    match kind:
        case "run":
            run = RescoreOptions(result=results[0], **chosen)
            return carry_out("score.rescore:run", run)
        case "bench":
            if chosen["reader"] is None:
                raise click.UsageError("a bench needs --reader: the model that answers", context)
            bench = AnswerOptions(results=results, **chosen)
            return carry_out("score.answers:answer", bench)
        case "wmb":
            chosen["data"] = chosen["data"] or "wmb100k"
            wmb = WmbScoreOptions(answers=Path(results[0]), **chosen)
            return carry_out("score.wmb_answers:run_score", wmb)
    if chosen["data"] is None:
        raise click.UsageError(f"{name} need --data: the benchmark's file", context)
    answers = QaOptions(suite=kind, answers=Path(results[0]), **chosen)  # type: ignore[arg-type] # the kinds that are left
    extra = "qa" if kind == "locomo" else None
    return carry_out("score.benchmark_answers:run_scoring", answers, extra=extra)


def _suite_of(context: click.Context, rubric: str | None) -> tuple[str, str | None]:
    """The benchmark that a file answers, and the rubrics that are left to apply."""
    if rubric is None:
        raise click.UsageError(
            "a file of answers needs --rubric longmemeval, locomo or wmb", context
        )
    names = [name.strip() for name in rubric.split(",")]
    for suite in ("locomo", "wmb"):
        if suite in names:
            names.remove(suite)
            if names and suite == "wmb":
                raise click.UsageError("--rubric wmb is used alone", context)
            return suite, ",".join(names) or None
    return "longmemeval", rubric
