"""`memconform bench`."""

from typing import get_args

import click

from memconform.bench.system import BASELINES
from memconform.cli import options as given
from memconform.cli.bench.options import SUITES, BenchOptions
from memconform.cli.commands import DAEMONS, OUTPUT, REFERENCE, SCORING, Command, PathType, option
from memconform.cli.lazy import carry_out, require_extra
from memconform.cli.options import (
    SECONDS,
    env,
    header,
    html,
    json_file,
    log_level,
    markdown,
    output,
    quiet,
    rank_by,
    schema,
    sdks,
    upstream,
    writable_exports,
)
from memconform.cli.shard_options import executor, shard
from memconform.contract.names import Mode
from memconform.datasets.sampling import Holdout
from memconform.errors import ExitCode
from memconform.longmemeval.names import Join

_BENCHMARK = "Which benchmark"
_QUERIES = "Which queries"
_SEARCH = "How to search"
_SWEEPS = "Sweeps"
_MODELS = "Models"
_LIMITS = "Limits and timeouts"


@click.command(
    "bench",
    cls=Command,
    examples=(
        "memconform bench --sdk all --mode bm25,semantic,hybrid",
        "memconform bench --suite locomo --data locomo --level turn --sdk go",
        "memconform bench --suite file --data mine.json --system flat-bm25",
    ),
    exit_codes={
        ExitCode.FAILED: "no agreement with --require-agreement",
        ExitCode.DAEMON: "a row could not be measured, or with --answers a daemon's reader failed",
        ExitCode.NOTHING_SELECTED: "no query selected",
        ExitCode.INCONCLUSIVE: "agreement cannot be decided with --require-agreement",
    },
)
@option(
    "--suite",
    group=_BENCHMARK,
    type=click.Choice(list(SUITES)),
    default="sample",
    help="Benchmark to run: `sample` ships with memconform, `file` is any file in a known format.",
)
@given.data(
    _BENCHMARK, "The benchmark's file or folder, `sample`, or a name that `datasets list` shows."
)
@option(
    "--level",
    group=_BENCHMARK,
    metavar="LEVEL",
    help="For locomo and longmemeval: whether an item is a `turn` or a `session`.",
)
@option(
    "--session-doc",
    group=_BENCHMARK,
    metavar="TEXT",
    help="For longmemeval: the text of a session, `full`, `user-only`, `dated` or `official`.",
)
@option(
    "--part",
    group=_BENCHMARK,
    metavar="A|B|both",
    help="For wmb: documents (A), conversations (B), or both.",
)
@option(
    "--errata",
    group=_BENCHMARK,
    type=REFERENCE,
    metavar="none|NAME|FILE",
    show_default="those that ship, for the public files that they describe",
    help="Queries whose gold is disputed or wrong: none, the errata that ship (locomo, longmemeval,"
    " wmb), or a JSON file. Scores are shown raw and corrected.",
)
@sdks(required=False)
@option(
    "--system",
    group=DAEMONS,
    multiple=True,
    type=REFERENCE,
    metavar="NAME|PATH",
    help="System to measure beside the SDKs: a memory system behind an adapter, by its name or the"
    f" path of a system.toml, all of these (`all`), or a baseline ({', '.join(BASELINES)}). May be"
    " given several times.",
)
@option(
    "--log",
    group=DAEMONS,
    multiple=True,
    type=REFERENCE,
    metavar="NAME=FILE",
    help="Rankings that another program made, as a system NAME: a retrieval log in the format of"
    " LongMemEval's released code. May be given several times.",
)
@env
@header
@option(
    "--ids",
    group=_QUERIES,
    multiple=True,
    metavar="ID,…",
    help="Ask only these queries.",
)
@option(
    "--category",
    group=_QUERIES,
    multiple=True,
    metavar="NAME",
    help="Ask only queries of this category. May be given several times.",
)
@option(
    "--holdout",
    group=_QUERIES,
    type=click.Choice(get_args(Holdout)),
    default="all",
    help="Part of the queries to ask: `held` is every tenth one, `tune` the others.",
)
@given.limit(_QUERIES, "queries")
@option(
    "--sample",
    group=_QUERIES,
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask N randomly drawn queries, from each category in proportion.",
)
@shard(_QUERIES, "haystacks, or of the queries where all are in one index")
@executor(_LIMITS)
@option(
    "--seed",
    group=_QUERIES,
    type=int,
    default=0,
    metavar="N",
    help="Seed of --sample and of random rankings.",
)
@option(
    "--shuffle",
    group=_QUERIES,
    type=int,
    metavar="SEED",
    help="Ask in a random order; no score may change.",
)
@option(
    "--answers",
    group=_QUERIES,
    is_flag=True,
    help="Also have each daemon's own reader answer each question (`/ask`), for `memconform score`"
    " to judge. Give --upstream real for answers of a real model.",
)
@given.mode(
    _SEARCH,
    f"Retrieval modes to measure: {', '.join(mode.value for mode in Mode)}.",
    field="modes",
    aliases=("--modes",),
    default="bm25",
    metavar="MODE,…",
)
@given.top_k(
    _SEARCH,
    "Ranks at which rankings are cut off for the metrics.",
    "-k",
    field="ks",
    type=str,
    default="5,10",
    metavar="K,…",
)
@option(
    "--index",
    group=_SEARCH,
    type=click.Choice(["isolated", "shared", "category"]),
    default="isolated",
    help="`isolated`: one brain for each haystack. `shared`: one brain for all, filtered by path,"
    " so that word frequencies are those of all haystacks. `category`, for wmb: one brain for each"
    " category.",
)
@option(
    "--keys",
    group=_SEARCH,
    metavar="FILE",
    type=PathType(),
    help="Key expansion: JSON with additional texts by which each item can be found.",
)
@option(
    "--join",
    group=_SEARCH,
    type=click.Choice(get_args(Join)),
    show_default="separate, with --keys",
    help="How keys are indexed: as items of their own, before the text of their item, or instead of"
    " it; split-…: each part of a key apart.",
)
@option(
    "--events",
    group=_SEARCH,
    metavar="FILE",
    type=PathType(),
    help="Temporal pruning: JSON with the dated events of each item. Needs --ranges.",
)
@option(
    "--ranges",
    group=_SEARCH,
    metavar="FILE",
    type=PathType(),
    help="Temporal pruning: JSON with the time range of each query. Needs --events.",
)
@option(
    "--fusion",
    group=_SWEEPS,
    metavar="NAME,…",
    help="Fusion methods of hybrid modes: minmax, rrf.",
)
@option(
    "--alpha",
    group=_SWEEPS,
    metavar="N,…",
    help="Weights of the vector scores in minmax fusion, 0 to 1.",
)
@option(
    "--rrf-k",
    group=_SWEEPS,
    metavar="N,…",
    help="Constants of reciprocal rank fusion.",
)
@option(
    "--pool-factor",
    group=_SWEEPS,
    metavar="N,…",
    help="Candidates of each ranking before fusion, as multiples of top-k.",
)
@option(
    "--pool-floor",
    group=_SWEEPS,
    metavar="N,…",
    help="Minimum numbers of candidates of each ranking before fusion.",
)
@option(
    "--kernel",
    group=_SWEEPS,
    metavar="NAME,…",
    help="What makes a score of two vectors, in modes that compare them: cosine, inverse-l2.",
)
@option(
    "--recency",
    group=_SWEEPS,
    metavar="W,…",
    help="Weights of recency, 0 to 0.85, in modes that fuse; none is a row without it.",
)
@option(
    "--temporal",
    group=_SWEEPS,
    metavar="W,…",
    help="Boosts, 0 to 1, of items dated near a time that the question names; none as above.",
)
@upstream
@option(
    "--embed-base-url",
    group=_MODELS,
    metavar="URL",
    help="OpenAI-compatible embedding server, …/v1; --env OPENAI_API_KEY=… sets its key.",
)
@given.embed_model(
    _MODELS,
    "Embedding model of that server, or with --upstream scripted one of memconform's",
)
@option(
    "--embed-dims",
    group=_MODELS,
    type=click.IntRange(min=1),
    metavar="N",
    help="Fail unless the embedding model has N dimensions.",
)
@option(
    "--query-prefix",
    group=_MODELS,
    metavar="TEXT",
    help="Text to prepend to a query before it is embedded.",
)
@option(
    "--rerank",
    group=_MODELS,
    metavar="none|URL|llm",
    help="Reranker: none, the URL of a cross-encoder server, or the daemon's language model. URL"
    " and llm add the mode hybrid-rerank.",
)
@option(
    "--concurrency",
    group=_LIMITS,
    type=click.IntRange(1, 256),
    default=1,
    metavar="N",
    help="Number of queries in flight.",
)
@option(
    "--timeout",
    group=_LIMITS,
    type=SECONDS,
    default=120.0,
    metavar="SECONDS",
    help="Time allowed for a whole request.",
)
@rank_by(SCORING)
@option(
    "--require-agreement",
    group=SCORING,
    is_flag=True,
    help="Fail unless the SDKs rank every query alike.",
)
@output
@given.resume(
    OUTPUT, "Resume an interrupted bench, given by its id or folder, with the same flags again."
)
@option(
    "--export",
    group=OUTPUT,
    multiple=True,
    metavar="[FORMAT=]FILE",
    callback=writable_exports,
    help="Also write every query with gold, rank, metrics and ranking to FILE.csv or FILE.jsonl;"
    " `longmemeval=FILE` is a retrieval log that LongMemEval's released code reads. May be given"
    " several times.",
)
@json_file
@html
@schema("bench.records:BenchReport")
@markdown
@option(
    "--verbose",
    group=OUTPUT,
    is_flag=True,
    help="Also show scores by category, and dropped items with reasons.",
)
@quiet
@log_level
def command(**flags: object) -> ExitCode:
    """Measure how well and how fast daemons retrieve, on public benchmarks or a file of yours.

    Every item must be proven searchable before the first query. A row has numbers only if all of
    its queries were measured. docs/BENCH.md explains metrics and settings.
    """
    options = BenchOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    if options.html:
        require_extra("report")
    return carry_out("bench.execution:bench", options, extra="bench")
