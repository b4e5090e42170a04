"""`memconform datasets list | info | convert`, for retrieval benchmarks."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
from pydantic import BaseModel, Field

from memconform.cli.commands import OUTPUT, REFERENCE, Command, option
from memconform.cli.datasets.fetch import show_sources, sources
from memconform.cli.options import json_file, output_file, schema
from memconform.cli.output_files import json_target
from memconform.datasets.benchmarks import Benchmark, formats, open_benchmark
from memconform.datasets.files import PACKED
from memconform.datasets.haystacks import DroppedEntry
from memconform.datasets.memini import memini_json
from memconform.datasets.registry import shipped
from memconform.datasets.sources import find_data, load_sources
from memconform.errors import ExitCode
from memconform.printing.output import echo
from memconform.printing.plurals import plural


@click.command("list", cls=Command, examples=("memconform datasets list",))
@sources
def list_command(data: Path, sources_file: Path | None) -> None:
    """List shipped question sets, public benchmarks and readable formats."""
    known_sources = load_sources(sources_file)
    echo("question sets, for run --data:")
    for name, path in shipped().items():
        echo(f"  {name:<12} {path}")
    echo("public benchmarks, for datasets fetch:")
    show_sources(known_sources, data)
    echo("benchmark formats, for datasets info and convert:")
    for known_format in formats().values():
        options = "; ".join(
            f"--{name.replace('_', '-')} {'|'.join(allowed)}"
            for name, allowed in known_format.options.items()
        )
        details = f" ({options})" if options else ""
        echo(f"  {known_format.name:<12} {known_format.about}{details}")


class BenchmarkInfo(BaseModel, defer_build=True):
    """The report of `datasets info --json`."""

    schema_version: str = "memconform/benchmark-info@1"
    path: str
    format: str
    options: dict[str, str]
    sha256: str
    """Digest of an unpacked file; empty for a folder."""
    haystacks: int = 0
    items: int = 0
    queries: int = 0
    with_gold: int = 0
    """Queries that name the items with their answer."""
    unavoidable: int = 0
    """Queries whose gold items are all missing, so that every system misses them."""
    abstain: int = 0
    scored: int | None = None
    """Queries that the official retrieval metrics count, if these exclude some."""
    categories: dict[str, int] = Field(default_factory=dict)
    dropped: list[DroppedEntry] = Field(default_factory=list)
    """Items and queries that could not be read or resolved, with reasons."""


def _located(_: click.Context, __: click.Parameter, named: str) -> Path:
    return find_data(named)


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
        help="For longmemeval: the text of a session, `full`, `user-only`, `dated` or `official`.",
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
    click.argument("path", type=REFERENCE, callback=_located),
)

_INVALID = {ExitCode.USAGE: "usage, or an invalid or unknown benchmark"}


def _benchmark(function: Callable[..., None]) -> Callable[..., None]:
    """Add the path of a benchmark and the options of all formats to a command."""
    for decorate in _OPTIONS:
        function = decorate(function)
    return function


@click.command(
    "info",
    cls=Command,
    examples=(
        "memconform datasets info lme",
        "memconform datasets info locomo10.json --level session",
        "memconform datasets info mine.json --verbose",
    ),
    exit_codes=_INVALID,
)
@_benchmark
@option("--verbose", group=OUTPUT, is_flag=True, help="List dropped items with reasons.")
@json_file
@schema("cli.datasets.benchmarks:BenchmarkInfo")
def info_command(
    path: Path,
    name: str | None,
    json_file: str | None,
    *,
    verbose: bool,
    **format_options: str | None,
) -> None:
    """Read a whole benchmark and count what it contains.

    PATH is a file or folder, `sample`, or a name that `datasets list` shows.
    """
    info = _count(open_benchmark(path, name, format_options))
    if json_file != "-":
        _show_benchmark(info, verbose=verbose)
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json(info, indent=2)


def _count(benchmark: Benchmark) -> BenchmarkInfo:
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
    counts = ((info.haystacks, "haystack"), (info.items, "item"), (info.queries, "query"))
    echo(", ".join(plural(count, noun) for count, noun in counts))
    echo(", ".join(f"{name} {count}" for name, count in info.categories.items()))
    line = f"{info.with_gold} with gold"
    if info.unavoidable:
        line += f", {plural(info.unavoidable, 'unavoidable miss')} among them"
    if info.abstain:
        line += f"; {info.abstain} to abstain from"
    if info.scored is not None:
        line += f"; {info.scored} counted by the official metrics"
    echo(line)
    if info.dropped:
        hint = "" if verbose else ": --verbose lists them"
        echo(f"{len(info.dropped)} dropped or unresolved{hint}")
    for entry in info.dropped if verbose else ():
        echo(f"  {entry.id}: {entry.why}")


@click.command(
    "convert",
    cls=Command,
    examples=(
        "memconform datasets convert locomo10.json -o memini.json",
        "memconform datasets convert lme -o memini.json",
    ),
    exit_codes=_INVALID,
)
@_benchmark
@output_file
def convert_command(
    path: Path, name: str | None, output: str, **format_options: str | None
) -> None:
    """Convert a benchmark to memini's JSON: one file of items and questions.

    PATH is a file or folder, `sample`, or a name that `datasets list` shows.

    That format has no place for ids, dates and rubrics of questions, nor for questions without an
    answer.
    """
    benchmark = open_benchmark(path, name, format_options)
    target_path = Path(output)
    if target_path.exists() and target_path.samefile(path):
        raise click.UsageError("--output-file would replace the benchmark itself")
    if target_path.suffix in PACKED:
        raise click.UsageError(f"--output-file: cannot write packed files ({target_path.suffix})")
    with json_target(output) as target:
        for piece in memini_json(path.stem, benchmark):
            target.write_text(piece)
    if output != "-":
        echo(f"-> {output}")
