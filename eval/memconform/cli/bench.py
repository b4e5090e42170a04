"""`memconform bench`."""

from pathlib import Path
from typing import get_args

import click

from memconform.bench.system import BASELINES
from memconform.cli.bench_options import SUITES, BenchOptions
from memconform.cli.lazy import carry_out
from memconform.cli.options import (
    SECONDS,
    env,
    json_file,
    log_level,
    output,
    schema,
    sdks,
    upstream,
    writable,
)
from memconform.contract.names import Mode
from memconform.datasets.expansion import Join
from memconform.datasets.sampling import Holdout
from memconform.errors import ExitCode


@click.command("bench", context_settings={"show_default": True})
@click.option(
    "--suite",
    type=click.Choice(list(SUITES)),
    default="sample",
    help="Which benchmark; sample ships with memconform, file is any format that is known.",
)
@click.option(
    "--data",
    metavar="PATH|NAME",
    help="The benchmark's file or folder, or a source that was fetched.",
)
@sdks(required=False)
@click.option(
    "--system",
    multiple=True,
    type=click.Choice(BASELINES),
    help="A plain algorithm to stand beside the SDKs. May be given several times.",
)
@click.option(
    "--modes",
    default="bm25",
    metavar="MODE,…",
    help=f"How daemons search: {', '.join(mode.value for mode in Mode)}.",
)
@click.option("-k", "ks", default="5,10", metavar="K,…", help="Where rankings are cut.")
@click.option(
    "--index",
    type=click.Choice(["isolated", "shared"]),
    default="isolated",
    help="A brain a haystack, or one brain of all, filtered by path: word frequencies are then"
    " those of all.",
)
@click.option("--level", metavar="LEVEL", help="Of locomo, longmemeval: turn or session.")
@click.option("--session-doc", metavar="TEXT", help="Of longmemeval: full, user-only or dated.")
@click.option("--part", metavar="A|B", help="Of wmb: documents (A) or conversations (B).")
@click.option(
    "--errata",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="JSON of query ids whose gold is disputed, each with why: scores without them as well.",
)
@click.option(
    "--keys",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Key expansion: JSON of what was written of each item.",
)
@click.option(
    "--join",
    type=click.Choice(get_args(Join)),
    help="Keys beside their item (unless given), before its text, or instead of it.",
)
@click.option(
    "--events",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Temporal pruning: the dated events of each item …",
)
@click.option(
    "--ranges",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="… and the time that each query is about.",
)
@click.option("--limit", type=click.IntRange(min=1), help="So many queries, spread evenly.")
@click.option(
    "--sample", type=click.IntRange(min=1), help="So many queries, drawn from every category."
)
@click.option("--ids", multiple=True, metavar="ID,…", help="Only these queries.")
@click.option("--category", multiple=True, metavar="NAME", help="Only queries of these.")
@click.option(
    "--holdout",
    type=click.Choice(get_args(Holdout)),
    default="all",
    help="held: every tenth query; tune: the others.",
)
@click.option("--seed", type=int, default=0, help="Of samples, random rankings and resampling.")
@click.option("--fusion", metavar="NAME,…", help="Sweep: minmax, rrf.")
@click.option("--alpha", metavar="N,…", help="Sweep: the weight of vectors, 0 to 1.")
@click.option("--rrf-k", metavar="N,…", help="Sweep: the constant of rank fusion.")
@click.option("--pool-factor", metavar="N,…", help="Sweep: candidates of a leg, times topK.")
@click.option("--pool-floor", metavar="N,…", help="Sweep: candidates of a leg, at least.")
@click.option("--recency", metavar="JSON", help="Passed on as tuning.recency.")
@click.option("--temporal", metavar="JSON", help="Passed on as tuning.temporal.")
@upstream
@click.option(
    "--embed-base-url",
    metavar="URL",
    help="An OpenAI-compatible server that embeds, …/v1; its key by --env OPENAI_API_KEY=….",
)
@click.option(
    "--embed-model",
    metavar="NAME",
    help="Its model; with --upstream scripted one of ours: fh256-1, all-MiniLM-L6-v2.",
)
@click.option(
    "--embed-dims", type=click.IntRange(min=1), help="Refuse a model of other dimensions."
)
@click.option("--query-prefix", metavar="TEXT", help="Put before a query when it is embedded.")
@click.option(
    "--rerank",
    metavar="none|URL|llm",
    help="No reranker, a cross-encoder's server, or the daemon's language model.",
)
@env
@click.option("--concurrency", type=click.IntRange(1, 256), default=1, help="Queries in flight.")
@click.option(
    "--shuffle", type=int, metavar="SEED", help="Another order of queries: no score may change."
)
@click.option("--timeout", type=SECONDS, default=120.0, help="Seconds for a whole request.")
@click.option(
    "--require-agreement", is_flag=True, help="Fail where the SDKs do not rank every query alike."
)
@click.option("--resume", metavar="RUN", help="Go on from a bench that was cut short.")
@click.option(
    "--header", multiple=True, metavar="NAME:VALUE", help="Send it with every request. Kept secret."
)
@output
@json_file
@click.option(
    "--markdown", metavar="FILE", callback=writable, help="Write the tables to FILE as Markdown."
)
@click.option("--verbose", is_flag=True, help="Also scores by category, and what was dropped.")
@click.option("--quiet", is_flag=True, help="No progress and no table.")
@schema("bench.records:BenchReport")
@log_level
def command(**flags: object) -> ExitCode:
    """Measure how well and how fast daemons retrieve, on benchmarks of the field.

    Nothing is asked before a brain is proven to hold every item, and no row has a number unless
    every query of it was measured.

    \b
    Exit codes: 0 ok, 1 no agreement where it is required, 2 usage, 3 a row could not be measured,
    4 nothing selected, 5 nothing to agree with, 70 internal error, 130 interrupted.
    """
    options = BenchOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    return carry_out("execute_bench:bench", options, extra="bench")
