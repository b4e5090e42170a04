"""`memconform datasets list | info | convert`: the retrieval benchmarks."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
from pydantic import BaseModel, Field

from memconform.cli.fetching import show_sources, sources
from memconform.cli.grouping import OUTPUT, Command, option
from memconform.cli.options import json_file, output_file, schema
from memconform.cli.targets import json_target
from memconform.datasets.benchmarks import Benchmark, formats, open_benchmark
from memconform.datasets.files import PACKED
from memconform.datasets.haystacks import DroppedEntry
from memconform.datasets.memini import memini_json
from memconform.datasets.registry import shipped
from memconform.datasets.sources import load_sources
from memconform.errors import ExitCode
from memconform.printing.output import echo


@click.command("list", cls=Command, examples=("memconform datasets list",))
@sources
def list_command(data: Path, sources_file: Path | None) -> None:
    """List shipped question sets, public benchmarks and readable formats."""
    found = load_sources(sources_file)
    echo("question sets, for run --dataset:")
    for name, path in shipped().items():
        echo(f"  {name:<12} {path}")
    echo("public benchmarks, for datasets fetch:")
    show_sources(found, data)
    echo("formats of benchmarks, for datasets info and convert:")
    for each in formats().values():
        options = "; ".join(
            f"--{name.replace('_', '-')} {'|'.join(allowed)}"
            for name, allowed in each.options.items()
        )
        echo(f"  {each.name:<12} {each.about}{f' ({options})' if options else ''}")


class BenchmarkInfo(BaseModel):
    """What `datasets info --json` writes."""

    schema_version: str = "memconform/benchmark-info@1"
    path: str
    format: str
    options: dict[str, str]
    sha256: str
    """Of a file, unpacked; empty of a folder."""
    haystacks: int = 0
    items: int = 0
    queries: int = 0
    with_gold: int = 0
    """Queries that name items as their answer's source."""
    unavoidable: int = 0
    """Of them, those none of whose gold is an item."""
    abstain: int = 0
    scored: int | None = None
    """Queries that the official retrieval metrics count, where they leave some out."""
    categories: dict[str, int] = Field(default_factory=dict)
    dropped: list[DroppedEntry] = Field(default_factory=list)
    """What could not be read or resolved, and why."""


_READING = "How to read the benchmark"

_OPTIONS = (
    option(
        "--part",
        group=_READING,
        metavar="A|B",
        help="For wmb: documents (A) or conversations (B).",
    ),
    option(
        "--session-doc",
        group=_READING,
        metavar="TEXT",
        help="For longmemeval: the text of a session, `full`, `user-only` or `dated`.",
    ),
    option(
        "--level",
        group=_READING,
        metavar="LEVEL",
        help="For locomo and longmemeval: whether an item is a `turn` or a `session`.",
    ),
    option(
        "--format",
        "name",
        group=_READING,
        metavar="NAME",
        show_default="recognized by content",
        help="Format of PATH; `datasets list` shows the formats and their options.",
    ),
    click.argument("path", type=click.Path(path_type=Path)),
)

_INVALID = {ExitCode.USAGE: "usage, or an invalid or unknown benchmark"}


def _benchmark(function: Callable[..., None]) -> Callable[..., None]:
    """A path, and the options of the formats; `datasets list` says which has which."""
    for decorate in _OPTIONS:
        function = decorate(function)
    return function


@click.command(
    "info",
    cls=Command,
    examples=(
        "memconform datasets info locomo10.json --level session",
        "memconform datasets info mine.json --verbose",
    ),
    exit_codes=_INVALID,
)
@_benchmark
@option("--verbose", group=OUTPUT, is_flag=True, help="List dropped items with reasons.")
@json_file
@schema("cli.benchmarks:BenchmarkInfo")
def info_command(
    path: Path, name: str | None, json_file: str | None, *, verbose: bool, **given: str | None
) -> None:
    """Read a whole benchmark and count what it contains."""
    info = _counted(open_benchmark(path, name, given))
    if json_file != "-":
        _show_benchmark(info, verbose=verbose)
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json(info, indent=2)


def _counted(benchmark: Benchmark) -> BenchmarkInfo:
    info = BenchmarkInfo(
        path=str(benchmark.path),
        format=benchmark.format.name,
        options=dict(benchmark.options),
        sha256="",
    )
    categories: Counter[str] = Counter()
    scored, official_gold = 0, benchmark.format.official_gold
    dropped: list[DroppedEntry] = []
    for haystack in benchmark:
        info.haystacks += 1
        info.items += len(haystack.items)
        info.queries += len(haystack.queries)
        ids = {item.id for item in haystack.items}
        for query in haystack.queries:
            categories[query.category] += 1
            info.abstain += query.abstain
            info.with_gold += bool(query.gold)
            info.unavoidable += bool(query.gold) and ids.isdisjoint(query.gold)
        if official_gold is not None:
            scored += bool(official_gold(haystack))
        dropped += haystack.dropped
    info.sha256 = benchmark.sha256
    info.categories = dict(sorted(categories.items()))
    info.scored = scored if official_gold is not None else None
    info.dropped = dropped
    return info


def _show_benchmark(info: BenchmarkInfo, *, verbose: bool) -> None:
    options = "".join(f", {name} {value}" for name, value in info.options.items())
    echo(f"{info.path}: {info.format}{options}")
    if info.sha256:
        echo(f"sha256 {info.sha256}")
    echo(f"{info.haystacks} haystacks, {info.items} items, {info.queries} queries")
    echo(", ".join(f"{name} {count}" for name, count in info.categories.items()))
    told = f"{info.with_gold} with gold"
    if info.unavoidable:
        told += f", {info.unavoidable} of them a miss that cannot be avoided"
    if info.abstain:
        told += f"; {info.abstain} to abstain from"
    if info.scored is not None:
        told += f"; {info.scored} scored officially"
    echo(told)
    if info.dropped:
        hint = "" if verbose else ": --verbose lists them"
        echo(f"{len(info.dropped)} dropped or unresolved{hint}")
    for each in info.dropped if verbose else ():
        echo(f"  {each.id}: {each.why}")


@click.command(
    "convert",
    cls=Command,
    examples=("memconform datasets convert locomo10.json --output memini.json",),
    exit_codes=_INVALID,
)
@_benchmark
@output_file
def convert_command(path: Path, name: str | None, output: str, **given: str | None) -> None:
    """Convert a benchmark to memini's JSON: one file of items and questions.

    That format has no place for ids, dates and rubrics of questions, nor for questions without an
    answer.
    """
    benchmark = open_benchmark(path, name, given)
    target_path = Path(output)
    if target_path.exists() and target_path.samefile(path):
        raise click.UsageError("--output would replace the benchmark itself")
    if target_path.suffix in PACKED:
        raise click.UsageError(f"--output: nothing is packed here, so not as {target_path.suffix}")
    with json_target(output) as target:
        for piece in memini_json(path.stem, benchmark):
            target.write_text(piece)
    if output != "-":
        echo(f"-> {output}")
