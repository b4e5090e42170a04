"""`memconform run`."""

from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli import options as given
from memconform.cli.commands import DAEMONS, OUTPUT, SCORING, Command, PathType, option
from memconform.cli.judge_options import JudgeFlags, call_options, judge_options
from memconform.cli.lazy import carry_out, require_extra
from memconform.cli.options import (
    SECONDS,
    env,
    floors,
    header,
    html,
    json_file,
    log_level,
    output,
    quiet,
    rank_by,
    schema,
    scorer,
    sdks,
    subjects,
    system,
    upstream,
)
from memconform.cli.shard_options import executor, shard
from memconform.contract.names import Mode, RankBy
from memconform.daemons.kinds import UpstreamKind
from memconform.errors import ExitCode

SCENARIO_NAMES = ("ask-basic", "ask-augmented", "search-retrieve-only")
"""Names in `scenarios.SCENARIOS`, repeated because its import brings the whole client."""

EXISTING_BRAIN = "eval"
"""The brain to ask if none is named and none is seeded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(JudgeFlags):
    """Flags of `run`, under their own names."""

    sdk: tuple[str, ...]
    no_skip: bool
    scenario: str
    mode: str
    dataset: str
    scorer: str | None
    limit: int | None
    ids: tuple[str, ...]
    tag: tuple[str, ...]
    shard: str | None
    executor: str | None
    shards: int | None
    output: Path
    port: int
    floor: tuple[str, ...]
    brain: str | None
    i_own_this_brain: bool
    top_k: int
    candidate_k: int
    rerank_top_n: int
    seed_reference_brain: bool
    upstream: UpstreamKind
    embed_model: str | None
    env: tuple[str, ...]
    require_agreement: bool
    corpus: Path | None
    concurrency: int
    timeout: float
    timeout_connect: float
    timeout_first: float
    timeout_gap: float
    allow_fallback: bool
    rank_by: RankBy | None
    reverify: bool
    repeat: int
    json_file: str | None
    html: bool
    quiet: bool
    resume: str | None
    header: tuple[str, ...]
    log_level: str


_ASK = "What to ask"
_BRAIN = "The brain"
_LIMITS = "Limits and timeouts"


@click.command(
    "run",
    cls=Command,
    examples=(
        "memconform run --sdk go --judge fake",
        "memconform run --sdk all --data smoke --scorer exact --require-agreement",
        "memconform run --sdk py --data mine.jsonl --corpus docs --floor 0.8",
    ),
    exit_codes={
        ExitCode.FAILED: "below a floor, drift, or no agreement with --require-agreement",
        ExitCode.DAEMON: "a daemon failed, or too little was measured",
        ExitCode.NOTHING_SELECTED: "no question selected",
        ExitCode.BUDGET: "the budget is spent; --resume continues",
        ExitCode.INCONCLUSIVE: "agreement cannot be decided with --require-agreement",
    },
)
@sdks(required=False)
@system
@option(
    "--port",
    group=DAEMONS,
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port of the daemon, 0 for a free one; several SDKs get N, N+1 and so on.",
)
@upstream
@given.embed_model(DAEMONS)
@env
@header
@given.data(
    _ASK,
    "Question set: a path to a .jsonl file, or a shipped name.",
    field="dataset",
    metavar="SET",
    default="lme",
)
@option(
    "--scenario",
    group=_ASK,
    type=click.Choice(SCENARIO_NAMES),
    default="ask-basic",
    help="How to ask: `ask-augmented` adds the question's date, `search-retrieve-only` searches"
    " without generating answers.",
)
@given.mode(
    _ASK,
    "Retrieval mode, passed to the daemon unchanged.",
    type=click.Choice([mode.value for mode in Mode]),
    default="auto",
)
@given.top_k(_ASK, "Number of chunks to retrieve for a question.", default=5, metavar="N")
@option(
    "--candidate-k",
    group=_ASK,
    type=click.IntRange(0, 10_000),
    default=0,
    metavar="N",
    help="Number of candidates of each ranking before fusion; 0 is the daemon's default.",
)
@option(
    "--rerank-top-n",
    group=_ASK,
    type=click.IntRange(0, 1_000),
    default=0,
    metavar="N",
    help="Number of chunks to rerank in mode hybrid-rerank; 0 is the daemon's default.",
)
@given.limit(_ASK, "questions")
@option("--ids", group=_ASK, multiple=True, metavar="ID,…", help="Ask only these questions.")
@option(
    "--tag",
    group=_ASK,
    multiple=True,
    metavar="TAG",
    help="Ask only questions with this tag. May be given several times: any of the tags will do.",
)
@shard(_ASK, "questions")
@executor(_LIMITS)
@option(
    "--repeat",
    group=_ASK,
    type=click.IntRange(1, 100),
    default=1,
    metavar="N",
    help="Ask each question N times.",
)
@option(
    "--seed-reference-brain",
    group=_BRAIN,
    is_flag=True,
    help="Recreate the brain from the dataset's reference answers, one document per question.",
)
@option(
    "--corpus",
    group=_BRAIN,
    type=PathType(),
    metavar="DIR",
    help="Recreate the brain from the files in DIR; a dataset's name selects the corpus shipped"
    " with it.",
)
@option(
    "--brain",
    group=_BRAIN,
    metavar="NAME",
    help=f"Brain to ask. Default: a new brain if the run fills one, otherwise {EXISTING_BRAIN!r}.",
)
@option(
    "--i-own-this-brain",
    group=_BRAIN,
    is_flag=True,
    help="Allow recreating any brain of a url: daemon, not only those named mc-….",
)
@option(
    "--reverify/--no-reverify",
    group=_BRAIN,
    aliases=("--reproof/--no-reproof",),
    default=True,
    help="Verify the index again between questions and at the end, and repeat retrievals that"
    " missed expected text. With --no-reverify only counts are compared, which the result states.",
)
@scorer(unless_given="judge; exact with search-retrieve-only")
@floors(unless_given="0.90 of all questions")
@judge_options
@call_options
@option(
    "--allow-fallback",
    group=SCORING,
    is_flag=True,
    help="Accept answers that were retrieved in another mode than the one requested.",
)
@rank_by(SCORING)
@option(
    "--require-agreement",
    group=SCORING,
    is_flag=True,
    help="Fail unless the SDKs rank and answer every question alike; by default differences are"
    " only shown.",
)
@option(
    "--concurrency",
    group=_LIMITS,
    type=click.IntRange(1, 256),
    default=1,
    metavar="N",
    help="Number of questions in flight.",
)
@option(
    "--timeout",
    group=_LIMITS,
    type=SECONDS,
    default=120.0,
    metavar="SECONDS",
    help="Time allowed for a whole question.",
)
@option(
    "--timeout-connect",
    group=_LIMITS,
    type=SECONDS,
    default=5.0,
    metavar="SECONDS",
    help="Time allowed to connect.",
)
@option(
    "--timeout-first",
    group=_LIMITS,
    type=SECONDS,
    default=30.0,
    metavar="SECONDS",
    help="Time allowed until the first event.",
)
@option(
    "--timeout-gap",
    group=_LIMITS,
    type=SECONDS,
    default=30.0,
    metavar="SECONDS",
    help="Time allowed between two events.",
)
@output
@given.resume(
    OUTPUT,
    "Resume an interrupted run, given by its id or folder: keep what was measured, ask the rest."
    " Takes one SDK.",
)
@json_file
@html
@schema("reports.machine:RunReport")
@quiet
@log_level
def command(**flags: object) -> ExitCode:
    """Start daemons, run a dataset against them, score the answers, enforce the pass-rate floor.

    Without --seed-reference-brain, --corpus and --brain, a daemon that memconform starts gets the
    dataset's own corpus, or else its reference answers. A url: daemon is left as it is.
    """
    flags["sdk"] = subjects(flags["sdk"], flags.pop("system"))  # type: ignore[arg-type] # click has validated every flag
    options = RunOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    if options.html:
        require_extra("report")
    return carry_out("run.execution:run", options)
