"""Options of `memconform answer`, and their values, typed."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import click

from memconform.bench.answering.arms import CONTROLS
from memconform.cli import benchmark_options
from memconform.cli.commands import FOLDER, OUTPUT, option
from memconform.cli.judge_options import PanelFlags
from memconform.scoring.reader.passages import HistoryFormat, Speakers, Unit
from memconform.scoring.reader.prompts import Method

_WHAT = "What to answer"
READER = "The reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions(PanelFlags):
    """The command line of `answer`. Names are those of the flags."""

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


data = option(
    "--data",
    group=_WHAT,
    metavar="PATH|NAME",
    show_default="the file that the bench read",
    help="The benchmark's file, if it has moved; its content must be the same.",
)

arms = option(
    "--arms",
    group=_WHAT,
    multiple=True,
    metavar="NAMES",
    default=(",".join(CONTROLS),),
    show_default=",".join(CONTROLS),
    help="Control arms to run beside the systems, separated by commas: "
    + "; ".join(f"{name} ({about})" for name, about in CONTROLS.items())
    + "; or none.",
)

top_k = option(
    "--top-k",
    group=_WHAT,
    type=click.IntRange(1, 1_000),
    default=10,
    metavar="K",
    help="Retrieved items that the reader is shown; at most the largest k of the bench.",
)

errata = benchmark_options.errata(_WHAT)

reader = option(
    "--reader",
    group=READER,
    required=True,
    metavar="MODEL",
    help="Model that answers: provider:model (openai, anthropic, gemini, ollama), or `fake`, which"
    " quotes a sentence offline.",
)

method = option(
    "--method",
    group=READER,
    type=click.Choice(get_args(Method)),
    default="direct",
    help="Answer at once; after notes (chain of note); or from notes on each passage, taken in"
    " calls of their own.",
)

history = option(
    "--history",
    group=READER,
    type=click.Choice(get_args(HistoryFormat)),
    default="text",
    help="How passages are written.",
)

speakers = option(
    "--speakers",
    group=READER,
    type=click.Choice(get_args(Speakers)),
    default="all",
    help="Whose turns the reader is shown.",
)

unit = option(
    "--unit",
    group=READER,
    type=click.Choice(get_args(Unit)),
    show_default="session for sessions, round for turns",
    help="What is shown of a retrieved turn: the turn, the turn with the next one, or its session.",
)

context_tokens = option(
    "--context-tokens",
    group=READER,
    type=click.IntRange(4_096, 1_000_000_000),
    metavar="N",
    show_default="the model's, from the table of prices",
    help="Context window of the reader, at four bytes a token. Passages are added in the order of"
    " the ranking; one that does not fit is skipped and counted.",
)

seed = option(
    "--seed",
    group=READER,
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Seed of the arm random-k.",
)

prompts = benchmark_options.prompts(
    READER,
    "Wording: memconform's, or that of LongMemEval's authors (--script), which cuts nothing.",
)

script = benchmark_options.script(READER, "run_generation.py", "its texts")

rubric = benchmark_options.rubric(unless_given="longmemeval for LongMemEval, strict for LoCoMo")

hypotheses = option(
    "--hypotheses",
    group=OUTPUT,
    type=FOLDER,
    metavar="DIR",
    help="Also write the answers of each arm to DIR/ARM.jsonl, for `judge` and for the authors'"
    " evaluate_qa.py.",
)
