"""What `memconform plan` does: the work of a command line, divided as `--shard` would."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from memconform.bench.plan import scan
from memconform.cli.bench.options import BenchOptions
from memconform.cli.bench.plan import SelectedBenchmark, shard_units
from memconform.cli.client.command import ClientOptions
from memconform.cli.conform.command import ConformOptions
from memconform.cli.conform.execution import select_cases
from memconform.cli.conform.selection import matching_cases
from memconform.cli.lazy import captured
from memconform.cli.lme.options import LmeOptions
from memconform.cli.lme.plan import read_data
from memconform.cli.main import cli
from memconform.cli.output_files import json_target
from memconform.cli.plan.command import PlanOptions
from memconform.cli.run.command import RunOptions
from memconform.cli.run.plan import select_questions
from memconform.cli.wmb.command import WmbRunOptions
from memconform.cli.wmb.execution import bench_options
from memconform.conformance.catalog import catalog
from memconform.conformance.clients.catalog import client_catalog
from memconform.datasets.sharding import Shard, Unit, deal
from memconform.errors import ExitCode, UsageError
from memconform.reports.console import table_console
from memconform.reports.fitted_table import fitting_table


@dataclass(frozen=True, slots=True)
class _Work:
    """What a command has to do, by the units that shards are made of."""

    unit: Unit
    counts: Mapping[str, Mapping[str, int]]
    """By unit, how many of what: items to store, queries to ask."""


def plan(options: PlanOptions) -> ExitCode:
    """Print the shards, or write them as a matrix.

    Raises:
        MemconformError: as the command itself, as far as its data are concerned; for more shards
            than there are units (`too_many_shards`).
    """
    reference, asked = _asked(options)
    if getattr(asked, "shard", None) is not None:
        raise UsageError(
            "--shard names one shard, and plan shows all of them",
            code="bad_option",
            hint="omit it",
        )
    work = WORK[reference](asked, options.shards)
    shares = deal(work.counts, options.shards, work.unit)
    rows = [_row(Shard(number, options.shards), own, work) for number, own in enumerate(shares, 1)]
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json({"include": rows}, indent=None)
        return ExitCode.OK
    cells = [
        [
            f"{value:.1%}" if name == "share" else f"{value:,}" if isinstance(value, int) else value
            for name, value in row.items()
        ]
        for row in rows
    ]
    console = table_console(stderr=False)
    console.print(fitting_table(list(rows[0]), cells, console.width, names=1)[0])
    return ExitCode.OK


def _row(shard: Shard, own: Iterable[str], work: _Work) -> dict[str, Any]:
    """One line of the plan: what a shard has, and its share of all that is counted."""
    names = list(dict.fromkeys(name for counts in work.counts.values() for name in counts))
    totals: Counter[str] = Counter()
    for counts in work.counts.values():
        totals.update(counts)
    sums: Counter[str] = Counter()
    units = list(own)
    for unit in units:
        sums.update(work.counts[unit])
    noun = (
        {} if work.unit in {name.rstrip("s") for name in names} else {f"{work.unit}s": len(units)}
    )
    share = sum(sums.values()) / max(1, sum(totals.values()))
    return {
        "shard": str(shard),
        **noun,
        **{name: sums[name] for name in names},
        "share": round(share, 4),
    }


def _asked(options: PlanOptions) -> tuple[str, Any]:
    """What the command line calls, and with which options; nothing is done."""
    line = [options.verb, *options.arguments]
    with captured() as calls:
        cli.main(line, prog_name="memconform", standalone_mode=False)
    if len(calls) != 1 or calls[0][0] not in WORK:
        raise UsageError(
            f"memconform {' '.join(line)} cannot be divided",
            code="bad_option",
            hint="give the flags of run, bench, wmb run, lme run, lme tri, conform or client",
        )
    return calls[0]


def _of_run(options: RunOptions, _: int) -> _Work:
    return _Work(
        "question",
        {question.id: {"questions": options.repeat} for question in select_questions(options)},
    )


def _of_bench(options: BenchOptions, shards: int, *, wants_memories: bool = False) -> _Work:
    selected = SelectedBenchmark(options, wants_memories=wants_memories)
    survey = scan(selected.benchmark)
    chosen = selected.choose(survey)
    units, unit = shard_units(options, survey, chosen, shards, wants_memories=wants_memories)
    counts: dict[str, dict[str, int]] = {}
    name = "queries" if unit == "haystack" else "questions"
    for query in filter(chosen.__contains__, survey.queries):
        own = counts.setdefault(units[query], {name: 0})
        own[name] += 1
    if unit == "haystack":
        for haystack in selected.benchmark:
            if haystack.id in counts:
                counts[haystack.id]["items"] = len(haystack.items)
    return _Work(unit, counts)


def _of_wmb(options: WmbRunOptions, shards: int) -> _Work:
    return _of_bench(bench_options(options), shards, wants_memories=True)


def _of_lme(options: LmeOptions, _: int) -> _Work:
    return _Work(
        "question", {question.id: {"questions": 1} for question in read_data(options).questions}
    )


def _of_conform(options: ConformOptions, _: int) -> _Work:
    counts: dict[str, Counter[str]] = {}
    for variant in select_cases(catalog(options.cases), options.profile, options.case):
        counts.setdefault(variant.base, Counter())["variants"] += 1
    return _Work("case", counts)


def _of_client(options: ClientOptions, _: int) -> _Work:
    counts: dict[str, Counter[str]] = {}
    for variant in matching_cases(client_catalog(), options.case, "memconform client list"):
        counts.setdefault(variant.base, Counter())["variants"] += 1
    return _Work("case", counts)


WORK: Mapping[str, Callable[[Any, int], _Work]] = {
    "run.execution:run": _of_run,
    "bench.execution:bench": _of_bench,
    "wmb.execution:run": _of_wmb,
    "lme.execution:run": _of_lme,
    "lme.execution:tri": _of_lme,
    "conform.execution:run_conform": _of_conform,
    "client.execution:run_client": _of_client,
}
"""By what a command calls, how to count its work."""
