"""`memconform wmb`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import click

from memconform.cli import options as given
from memconform.cli.commands import DAEMONS, OUTPUT, REFERENCE, Group, PathType, option
from memconform.cli.lazy import carry_out
from memconform.cli.options import (
    SECONDS,
    env,
    header,
    json_file,
    log_level,
    output,
    quiet,
    schema,
    upstream,
    writable_file,
)
from memconform.cli.shard_options import executor, shard
from memconform.contract.names import Mode
from memconform.daemons.kinds import UpstreamKind
from memconform.datasets.wmb_names import Part
from memconform.errors import ExitCode

_BENCHMARK = "Which questions"
_SEARCH = "How to search"

_DATA = given.data(
    _BENCHMARK,
    "The folder that holds datasets/ and documents/, or the name of the fetched source.",
    metavar="DIR|NAME",
    default="wmb100k",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WmbRunOptions:
    """Flags of `wmb run`, under their own names."""

    data: str
    part: Part | None
    sdk: str | None
    adapter: Path | None
    system: str | None
    index: Literal["isolated", "category"] | None
    mode: str
    top_k: int
    limit: int | None
    sample: int | None
    ids: tuple[str, ...]
    category: tuple[str, ...]
    seed: int
    shard: str | None
    executor: str | None
    shards: int | None
    upstream: UpstreamKind
    embed_model: str | None
    env: tuple[str, ...]
    header: tuple[str, ...]
    timeout: float
    resume: str | None
    output: Path
    answers: str | None
    json_file: str | None
    quiet: bool
    log_level: str


@click.group(
    "wmb",
    cls=Group,
    examples=(
        "memconform wmb run --data DIR --sdk go --answers answers.json",
        "memconform wmb run --data DIR --sdk go --limit 20",
        "memconform wmb run --data DIR --adapter my_adapter.py",
    ),
)
def command() -> None:
    """Run WMB-100K against a memory system, for `score --rubric wmb` to score.

    docs/WMB.md walks through it, from the data to the table of scores.
    """


@command.command(
    "run",
    examples=(
        "memconform wmb run --data DIR --sdk go --part B --answers answers.json",
        "memconform wmb run --data DIR --sdk go --limit 20",
        "memconform wmb run --data DIR --adapter my_adapter.py --timeout 30",
    ),
    exit_codes={
        ExitCode.DAEMON: "a question was not measured; --resume asks it again",
        ExitCode.NOTHING_SELECTED: "no question selected",
    },
)
@_DATA
@option(
    "--part",
    group=_BENCHMARK,
    type=click.Choice(get_args(Part)),
    show_default="both; B for --adapter and --system",
    help="Ask about the documents (A), the conversations (B), or both.",
)
@option("--ids", group=_BENCHMARK, multiple=True, metavar="ID,…", help="Ask only these questions.")
@option(
    "--category",
    group=_BENCHMARK,
    multiple=True,
    metavar="TYPE",
    help="Ask only questions of this type, such as S1Situational. May be given several times.",
)
@given.limit(_BENCHMARK, "questions")
@option(
    "--sample",
    group=_BENCHMARK,
    type=click.IntRange(min=1),
    metavar="N",
    help="Ask N randomly drawn questions, of each type in proportion.",
)
@shard(_BENCHMARK, "questions")
@executor(_BENCHMARK)
@option("--seed", group=_BENCHMARK, type=int, default=0, metavar="N", help="Seed of --sample.")
@option(
    "--sdk",
    group=DAEMONS,
    metavar="SDK",
    help="SDK to ask: a known name, a path to an sdk.toml, package.module:Class, or"
    " url:http://127.0.0.1:PORT[,dialect=NAME] for a running daemon.",
)
@option(
    "--adapter",
    group=DAEMONS,
    type=PathType(),
    metavar="FILE.py",
    help="Ask a Python file with the benchmark's store(user_id, content) and search(user_id, query)"
    " instead. It runs in a process of its own, with your shell's variables.",
)
@option(
    "--system",
    group=DAEMONS,
    type=REFERENCE,
    metavar="NAME|PATH",
    help="Ask a memory system behind an adapter instead, by its name or the path of a system.toml.",
)
@env
@header
@given.mode(
    _SEARCH,
    "Retrieval mode of the SDK.",
    type=click.Choice([mode.value for mode in Mode]),
    default="bm25",
)
@given.top_k(
    _SEARCH,
    "Memories to request for a question; an adapter returns as many as it wants.",
    "-k",
    default=10,
)
@option(
    "--index",
    group=_SEARCH,
    type=click.Choice(["isolated", "category"]),
    show_default="isolated; category for an adapter",
    help="`isolated`: one brain for all conversations, and one for all documents. `category`: one"
    " for each category, as published rows of other systems have; a question across two (S3)"
    " searches both.",
)
@upstream
@given.embed_model(DAEMONS)
@option(
    "--timeout",
    group=_SEARCH,
    type=SECONDS,
    default=120.0,
    metavar="SECONDS",
    help="Time allowed for a request, or for a call of the adapter.",
)
@given.resume(
    OUTPUT,
    "Resume an interrupted run, with the same flags again: what it measured is not asked again.",
)
@output
@option(
    "--answers",
    group=OUTPUT,
    metavar="FILE",
    callback=writable_file,
    help="Also write the answers to FILE, and their record to FILE's name with .run.json.",
)
@json_file
@schema("bench.wmb.records:WmbRun")
@quiet
@log_level
def run_command(**flags: object) -> ExitCode:
    """Run the questions against an SDK, an adapter or a system, and write answers.json.

    A row of a conversation is a document, and so is each file of the documents. A question whose
    search failed has no row, and is reported as not measured.
    """
    options = WmbRunOptions(**flags)  # type: ignore[arg-type] # click has validated every flag
    return carry_out("wmb.execution:run", options, extra="bench")
