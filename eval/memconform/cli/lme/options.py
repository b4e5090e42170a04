"""Options of `memconform lme run` and `lme tri`, and their values, typed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import click

from memconform.cli import options as given
from memconform.cli.commands import DAEMONS, FOLDER, OUTPUT, PathType, option
from memconform.cli.judge_options import PanelFlags
from memconform.cli.lme.model_options import model_options
from memconform.cli.lme.values import SCOPES, SessionFilterChoice
from memconform.cli.options import SECONDS, env, header, log_level, quiet, rank_by
from memconform.cli.shard_options import executor, shard
from memconform.contract.names import Mode, RankBy
from memconform.daemons.kinds import UpstreamKind

_Command = TypeVar("_Command", bound=Callable[..., Any])

_DATA = "What is replayed"
_BRAIN = "The shared brain"
_RETRIEVAL = "Retrieval"

IngestFlag = Literal["bulk", "replay", "none", "agentic"]
SessionFilter = Literal["auto", "on", "off"]
Sampler = Literal["memconform", "jeffs-brain"]
"""Ours, by digests of ids; or that of jeffs-brain/memory, which draws the same ids as its runner.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LmeOptions(PanelFlags):
    """The command line of `lme run` and `lme tri`. Names are those of the flags."""

    dataset: str
    expected_sha: str | None
    sample_size: int | None
    seed: int
    sampler: Sampler
    categories: tuple[str, ...]
    sample_ids_file: Path | None
    shard: str | None
    executor: str | None
    shards: int | None
    ingest_mode: IngestFlag
    replay_concurrency: int
    extract_model: str
    brain_cache: Path | None
    extract_only: bool
    skip_extract: bool
    contextualise: bool
    contextualise_cache_dir: Path | None
    sdk: tuple[str, ...]
    system: tuple[str, ...]
    no_skip: bool = False
    actor_endpoint: str | None = None
    actor_endpoint_style: Literal["retrieve-only", "full"]
    actor_brain: str
    i_own_this_brain: bool
    port: int
    sdk_port: tuple[str, ...]
    upstream: UpstreamKind | None
    env: tuple[str, ...]
    header: tuple[str, ...]
    timeout: float
    retrieval_mode: str | None
    actor_topk: int
    actor_candidatek: int
    actor_rerank_topn: int
    actor_scope: str | None
    actor_project: str | None
    actor_path_prefix: str | None
    actor_filter_question_sessions: SessionFilter
    rank_by: RankBy | None
    benchmark_mode: tuple[str, ...] = ()
    reader: str | None
    no_reader: bool
    max_iterations: int
    question_timeout: float
    judge_timeout: float
    reader_cache_dir: Path | None
    judge_cache_dir: Path | None
    context_tokens: int | None
    concurrency: int
    output: Path | None
    json_file: str | None
    html: bool
    quiet: bool
    log_level: str


def _apply(command: _Command, *decorators: Callable[[_Command], _Command]) -> _Command:
    for decorator in reversed(decorators):
        command = decorator(command)
    return command


def replay_options(command: _Command) -> _Command:
    """The flags that `lme run` and `lme tri` share, besides those that name SDKs."""
    return _apply(
        command,
        given.data(_DATA, "LongMemEval's file: S, M or oracle.", field="dataset", required=True),
        option(
            "--expected-sha",
            group=_DATA,
            metavar="SHA256",
            help="Refuse a file with another SHA-256; a beginning of at least 8 digits will do.",
        ),
        option(
            "--sample",
            "sample_size",
            aliases=("--sample-size",),
            group=_DATA,
            type=click.IntRange(0),
            metavar="N",
            show_default="all questions",
            help="Questions to draw, stratified by question type; 0 draws all.",
        ),
        option(
            "--seed",
            group=_DATA,
            type=click.IntRange(0),
            default=42,
            metavar="N",
            help="Seed of the sample.",
        ),
        option(
            "--sampler",
            group=_DATA,
            type=click.Choice(get_args(Sampler)),
            default="memconform",
            help="Who draws. memconform: the same ids whatever the order of the file; jeffs-brain:"
            " the ids that the runner of jeffs-brain/memory draws with this seed, in its order.",
        ),
        option(
            "--categories",
            group=_DATA,
            multiple=True,
            metavar="TYPES",
            show_default="all",
            help="Ask only the questions of the sample that have these types, separated by commas.",
        ),
        option(
            "--sample-ids-file",
            group=_DATA,
            type=PathType(dir_okay=False),
            metavar="FILE",
            help="Ids of the questions, one a line, asked in this order; takes precedence over"
            " --sample.",
        ),
        shard(_DATA, "questions, whose brain has the sessions of all"),
        executor(_DATA),
        option(
            "--ingest-mode",
            group=_BRAIN,
            type=click.Choice(get_args(IngestFlag)),
            default="replay",
            help="bulk: a document for each session; replay: also the facts that a model extracts"
            " from it; none: the daemon's brain was filled before; agentic: as replay, and the"
            " reader searches by itself, in at most 8 turns.",
        ),
        option(
            "--extract-model",
            group=_BRAIN,
            default="gpt-4o",
            metavar="MODEL",
            help="Model that extracts facts: provider:model, gpt-… or claude-…, or `fake`.",
        ),
        option(
            "--contextualise",
            group=_BRAIN,
            is_flag=True,
            help="Have the extractor write before each fact how it belongs to its session: one call"
            " a fact.",
        ),
        option(
            "--contextualise-cache-dir",
            group=_BRAIN,
            type=FOLDER,
            metavar="DIR",
            show_default="the cache of replies",
            help="Folder for the replies of --contextualise.",
        ),
        option(
            "--replay-concurrency",
            group=_BRAIN,
            type=click.IntRange(1, 64),
            default=16,
            metavar="N",
            help="Sessions from which facts are extracted at once.",
        ),
        option(
            "--brain-cache",
            group=_BRAIN,
            type=FOLDER,
            metavar="DIR",
            show_default="brains/ in the user's cache folder",
            help="Folder of brains, by all that their documents depend on.",
        ),
        option(
            "--extract-only",
            group=_BRAIN,
            is_flag=True,
            help="Make the brain, and start no daemon.",
        ),
        option(
            "--skip-extract",
            group=_BRAIN,
            is_flag=True,
            help="Use the brain of an earlier command. Fails if there is none.",
        ),
        option(
            "--actor-endpoint-style",
            group=DAEMONS,
            type=click.Choice(["retrieve-only", "full"]),
            default="retrieve-only",
            help="retrieve-only: the daemon searches, and memconform's reader answers; full: the"
            " daemon's own reader answers.",
        ),
        option(
            "--actor-brain",
            group=DAEMONS,
            default="eval-lme",
            metavar="ID",
            help="Brain of the daemon to fill; it is emptied first.",
        ),
        option(
            "--i-own-this-brain",
            group=DAEMONS,
            is_flag=True,
            help="Allow emptying --actor-brain of a daemon that memconform did not start.",
        ),
        option(
            "--port",
            group=DAEMONS,
            type=click.IntRange(0, 65_535),
            default=0,
            metavar="PORT",
            help="Port of the first daemon; each further one gets the next. 0 picks free ones.",
        ),
        option(
            "--sdk-port",
            group=DAEMONS,
            multiple=True,
            metavar="SDK=PORT",
            help="Port of one SDK's daemon, instead of --port.",
        ),
        _scripted_upstream,
        env,
        header,
        option(
            "--timeout",
            group=DAEMONS,
            type=SECONDS,
            default=120.0,
            metavar="SECONDS",
            help="Time allowed for a request to a daemon.",
        ),
        given.mode(
            _RETRIEVAL,
            "Mode of every search.",
            field="retrieval_mode",
            aliases=("--retrieval-mode",),
            type=click.Choice([mode.value for mode in Mode]),
            show_default="the first of hybrid-rerank, hybrid and bm25 that every SDK claims",
        ),
        given.top_k(
            _RETRIEVAL,
            "Chunks that a search returns.",
            field="actor_topk",
            aliases=("--actor-topk",),
            default=20,
        ),
        option(
            "--candidate-k",
            "actor_candidatek",
            aliases=("--actor-candidatek",),
            group=_RETRIEVAL,
            type=click.IntRange(0, 10_000),
            default=0,
            metavar="K",
            help="Candidates of each leg; 0 leaves it to the daemon.",
        ),
        option(
            "--rerank-top-n",
            "actor_rerank_topn",
            aliases=("--actor-rerank-topn",),
            group=_RETRIEVAL,
            type=click.IntRange(0, 1_000),
            default=0,
            metavar="N",
            help="Chunks that are reranked; 0 leaves it to the daemon.",
        ),
        option(
            "--actor-scope",
            group=_RETRIEVAL,
            type=click.Choice(["", *SCOPES]),
            metavar="SCOPE",
            help="Search only these folders: memory is memory/, project memory/project/ (facts),"
            " global memory/global/, raw is raw/ (sessions). Of the names of jeffs-brain/memory,"
            " project_memory and global_memory stand for the same, raw_lme for raw/lme/; wiki,"
            " sources and raw_document are refused, because a replay stores nothing there.",
        ),
        option(
            "--actor-project",
            group=_RETRIEVAL,
            metavar="NAME",
            help="Search only facts of this project, and store extracted facts below it; without"
            " it they are stored below `lme`.",
        ),
        option(
            "--actor-path-prefix",
            group=_RETRIEVAL,
            metavar="PREFIX",
            help="Search only documents whose path begins with PREFIX.",
        ),
        option(
            "--actor-filter-question-sessions",
            group=_RETRIEVAL,
            type=SessionFilterChoice(get_args(SessionFilter)),
            is_flag=False,
            flag_value="on",
            default="auto",
            help="Restrict each question to its own sessions. auto: if every SDK of the command is"
            " seen to honour the filter; one SDK with it is no comparison. true and false stand for"
            " on and off.",
        ),
        rank_by(_RETRIEVAL),
        *model_options(),
        option(
            "--output",
            group=OUTPUT,
            type=FOLDER,
            metavar="DIR",
            show_default="results/lme-<time>, or results/tri-lme-<time>",
            help="Folder to write results to. With that of an interrupted command, it is"
            " continued.",
        ),
        given.json_file,
        given.html,
        given.schema("replay.records:LmeReport"),
        quiet,
        log_level,
    )


_scripted_upstream = option(
    "--upstream",
    group=DAEMONS,
    type=click.Choice(get_args(UpstreamKind)),
    show_default="scripted for daemons that memconform starts",
    help="What answers the daemon's model calls: `own` is its offline fakes, `scripted` a server"
    " that memconform starts, `real` the services that your shell's variables name.",
)
