"""Plans a bench: resolves the command line into a benchmark, systems and settings."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from memconform.bench.digests import digest_of_names
from memconform.bench.journal import ResumeState, load_resume_state
from memconform.bench.plan import BenchmarkScan, BenchPlan, positions_of, scan
from memconform.bench.records import BenchSettings
from memconform.bench.system import System
from memconform.bench.tasks import QueryPlanner
from memconform.cli.bench.options import SUITES, BenchOptions
from memconform.cli.bench.search_settings import cuts, searched_strategies, service_variables
from memconform.cli.bench.systems import (
    adapter_systems,
    build_runners,
    daemon_system,
    find_adapters,
    install_adapters,
    open_baselines,
    read_logs,
    require_distinct_names,
    require_known_builds,
)
from memconform.cli.errata import applied_errata, candidate_errata, corrected_items
from memconform.cli.export import require_exportable
from memconform.cli.values import (
    comma_separated,
    daemon_variables,
    question_ids,
    request_headers,
)
from memconform.contract.wire import Mode
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.limits import allow_files
from memconform.daemons.sdk_runner import Progress
from memconform.datasets.benchmarks import Benchmark, open_benchmark
from memconform.datasets.errata import Errata
from memconform.datasets.registry import sample
from memconform.datasets.sampling import QuerySelection, sample_queries, select_queries
from memconform.datasets.sharding import Shard, ShardRecord, Unit
from memconform.datasets.sources import find_data, known_sources
from memconform.datasets.wmb import question_of
from memconform.errors import MemconformError, UsageError
from memconform.printing.plurals import plural
from memconform.storage.folders import RunFolder, find_journal, new_run_id

if TYPE_CHECKING:
    from memconform.longmemeval.pruning import Pruning


@dataclass(frozen=True, slots=True)
class PreparedBench:
    """A bench that is ready to run, and the SDKs that it skips."""

    plan: BenchPlan
    folder: RunFolder
    resume_state: ResumeState
    skipped: list[SkippedSdk]


async def plan_bench(
    options: BenchOptions,
    progress: Progress,
    *,
    wants_memories: bool = False,
    adapters: Callable[[Path], Sequence[System]] = lambda _: (),
) -> PreparedBench:
    """Plan the bench of a command line, and build its SDKs.

    Args:
        options: the command line.
        progress: shows what is built and skipped.
        wants_memories: whether the texts that a search returns are the result.
        adapters: makes further systems, given the run's folder.

    Raises:
        UsageError: if a flag or a file is invalid, flags contradict each other, or too few files
            may be open.
        NothingSelectedError: if no query is selected.
        DaemonError: if an SDK that was named cannot be built.
    """
    if not (options.sdk or options.system or options.log or wants_memories):
        raise UsageError(
            "no system to measure", code="no_system", hint="give --sdk all, --system or --log"
        )
    if options.sdk:
        # Once, before a large benchmark is read, and before an SDK is built.
        allow_files(options.concurrency)
    strategies = searched_strategies(options)
    variables = daemon_variables(service_variables(options))
    headers = request_headers(options.header)
    journal = None if options.resume is None else find_journal(options.output, options.resume)
    selected = SelectedBenchmark(options, wants_memories=wants_memories)
    benchmark = selected.benchmark
    logs = read_logs(options)
    programs = find_adapters(options, progress)
    candidate = candidate_errata(options.errata, benchmark.format.name)
    corrected = corrected_items(candidate, benchmark)
    survey = scan(benchmark, corrected)
    for log in logs:
        log.require_known_questions(survey.queries)
    chosen = selected.choose(survey)
    if options.sdk and any(strategy.needs_dates for strategy in strategies):
        survey.require_question_dates(chosen)
    if options.sdk and any(strategy.mode is Mode.CONVERSATION for strategy in strategies):
        survey.require_sessions()
    errata = applied_errata(options.errata, candidate, survey, progress)
    settings, planner = _settings(
        options,
        benchmark,
        survey,
        chosen,
        errata=errata,
        corrected=corrected,
        wants_memories=wants_memories,
    )
    if planner.pruning is not None:
        survey = replace(survey, dropped=(*survey.dropped, *planner.pruning.events.dropped))
    runners, skipped = await build_runners(options, strategies, variables, progress)
    baselines = open_baselines(options, benchmark, variables)
    require_distinct_names(
        [each.name for named in (runners, programs, baselines, logs) for each in named]
    )
    interpreters, not_installed = await install_adapters(options, programs, progress)
    require_exportable(
        options.export,
        rows=len(runners) * len(strategies) + len(baselines) + len(logs) + len(programs),
        format_name=benchmark.format.name,
    )
    if journal is not None:
        require_known_builds(runners)
    run_id = new_run_id(datetime.now(UTC), "bench", options.suite)
    folder = RunFolder(options.output, run_id)
    daemons = [daemon_system(options, runner, strategies, headers, folder) for runner in runners]
    systems: tuple[System, ...] = (
        *daemons,
        *adapter_systems(options, programs, interpreters, folder.path),
        *baselines,
        *logs,
        *adapters(folder.path),
    )
    plan = BenchPlan(
        suite=options.suite,
        benchmark=benchmark,
        scan=survey,
        settings=settings,
        positions=positions_of(survey, chosen),
        planner=planner,
        errata=errata,
        systems=systems,
        seed=options.seed,
        concurrency=options.concurrency,
        shuffle=options.shuffle,
        answers=options.answers,
        transformations=_transformations(options),
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        resumed=journal,
    )
    identities = {system.name: system.identity for system in systems}
    try:
        resume_state = (
            ResumeState() if journal is None else load_resume_state(journal, settings, identities)
        )
    except MemconformError:
        folder.remove()
        raise
    return PreparedBench(plan, folder, resume_state, [*skipped, *not_installed])


class SelectedBenchmark:
    """The benchmark of a command line, and what is asked of it."""

    def __init__(self, options: BenchOptions, *, wants_memories: bool = False) -> None:
        """Open it; raises UsageError as `plan_bench`."""
        self.benchmark = _benchmark(options)
        _add_keys(options, self.benchmark)
        self._selection = _selection(options)
        self._wants_memories = wants_memories
        self._early: frozenset[str] | None = None
        if options.index == "category":
            # Before the split, which changes the order that --limit and --holdout count in.
            self._early = sample_queries(self.benchmark, self._selection)
            self.benchmark.split_by_category(every=wants_memories)

    def choose(self, survey: BenchmarkScan) -> frozenset[str]:
        """The ids of the selected queries.

        Raises:
            MemconformError: as `select_queries`.
        """
        if self._early is None:
            # From the scan: reading LongMemEval S once more takes as long as ranking it by BM25.
            return select_queries(survey.queries, self._selection)
        if not self._wants_memories:
            return self._early
        return frozenset(each for each in survey.queries if question_of(each) in self._early)


def shard_units(
    options: BenchOptions,
    survey: BenchmarkScan,
    chosen: frozenset[str],
    shards: int,
    *,
    wants_memories: bool = False,
) -> tuple[dict[str, str], Unit]:
    """What each chosen query is divided by, and whether that is its haystack or itself.

    A haystack is divided if all are in one index, or if there are fewer than shards.
    """
    homes = {query: survey.homes[query] for query in chosen}
    if wants_memories:
        # A question of WMB-100K that is searched in two indexes has two queries and one answer.
        return {query: question_of(query) for query in chosen}, "question"
    if options.index == "shared" or len(set(homes.values())) < shards:
        return {query: query for query in chosen}, "question"
    return homes, "haystack"


def _add_keys(options: BenchOptions, benchmark: Benchmark) -> None:
    """Expand the items of a benchmark by the texts of --keys."""
    if options.join is not None and options.keys is None:
        raise UsageError("--join needs --keys", code="bad_option", hint="add --keys FILE")
    if options.keys is not None:
        from memconform.longmemeval.keys import expanded, read_keys  # noqa: PLC0415 - rare

        join = options.join or "separate"
        keys = read_keys(options.keys)
        benchmark.transform = lambda haystacks: expanded(haystacks, keys, join)


def _benchmark(options: BenchOptions) -> Benchmark:
    format_options = {
        "level": options.level,
        "session_doc": options.session_doc,
        "part": options.part,
    }
    if options.suite == "sample":
        if options.data is not None:
            raise UsageError(
                "--suite sample ships with memconform and takes no --data",
                code="bad_option",
                hint="use --suite file for a file of yours",
            )
        return open_benchmark(sample(), None, format_options)
    sources = known_sources()
    matching = [name for name, src in sources.items() if src.format == SUITES[options.suite]]
    if options.data is None:
        raise UsageError(
            f"--suite {options.suite} needs --data",
            code="no_data",
            hint=f"give a path or a fetched source: {', '.join(matching or sources)}",
        )
    path = find_data(options.data)
    try:
        return open_benchmark(path, SUITES[options.suite], format_options)
    except UsageError as error:
        if error.code == "wrong_format":
            suites = ", ".join(filter(None, SUITES.values()))
            error.hint = f"use --suite file, or the matching one of {suites}"
        raise


def _selection(options: BenchOptions) -> QuerySelection:
    return QuerySelection(
        ids=question_ids(options.ids),
        categories=options.category,
        limit=options.limit,
        sample=options.sample,
        seed=options.seed,
        holdout=options.holdout,
    )


def _sharded(
    options: BenchOptions, survey: BenchmarkScan, chosen: frozenset[str], *, wants_memories: bool
) -> tuple[frozenset[str], ShardRecord | None]:
    """The queries of --shard, and what the settings say of it; all queries without it."""
    if options.shard is None:
        return chosen, None
    shard = Shard.parse(options.shard)
    units, unit = shard_units(options, survey, chosen, shard.of, wants_memories=wants_memories)
    own = shard.choose(units.values(), unit)
    return frozenset(query for query in chosen if units[query] in own), shard.record(unit)


def _settings(
    options: BenchOptions,
    benchmark: Benchmark,
    survey: BenchmarkScan,
    chosen: frozenset[str],
    *,
    errata: Errata | None,
    corrected: Mapping[str, tuple[str, ...]],
    wants_memories: bool,
) -> tuple[BenchSettings, QueryPlanner]:
    ks = cuts(options.ks)
    asked, shard = _sharded(options, survey, chosen, wants_memories=wants_memories)
    pruning = _pruning(options, survey)
    settings = BenchSettings(
        format=benchmark.format.name,
        options=dict(benchmark.options),
        content_sha256=survey.content_sha256,
        chosen_sha256=digest_of_names(chosen),
        disputed_sha256=None if errata is None else errata.digest(),
        pruned_sha256=None
        if pruning is None
        else digest_of_names(map(repr, _pruning_inputs(pruning))),
        index=options.index,
        ks=ks,
        shard=shard,
        unit="memory" if wants_memories else "item",
    )
    planner = QueryPlanner(
        query_ids=asked,
        depth=ks[-1],
        official_gold=benchmark.format.official_gold,
        official_sessions=benchmark.format.official_sessions
        if benchmark.options.get("level") == "turn"
        else None,
        disputed=None if errata is None else errata.disputed,
        corrected_gold={} if errata is None else corrected,
        pruning=pruning,
        wants_memories=wants_memories,
    )
    return settings, planner


def _pruning_inputs(pruning: "Pruning") -> Iterable[object]:
    """Everything that decides what is pruned, for a digest."""
    return (*pruning.events.days.items(), *pruning.ranges.items(), pruning.slack)


def _transformations(options: BenchOptions) -> tuple[str, ...]:
    """Describe how the benchmark was transformed, and what was selected from it."""
    descriptions: dict[str, object] = {
        f"keys of {options.keys} by {options.join or 'separate'}": options.keys,
        f"pruned by {options.events} and {options.ranges}": options.events,
        f"limit {options.limit}": options.limit,
        f"sample {options.sample} of seed {options.seed}": options.sample,
        plural(len(comma_separated(options.ids)), "id"): options.ids,
        f"category {', '.join(options.category)}": options.category,
        f"holdout {options.holdout}": options.holdout != "all",
    }
    return tuple(text for text, flag in descriptions.items() if flag)


def _pruning(options: BenchOptions, survey: BenchmarkScan) -> "Pruning | None":
    if options.events is None or options.ranges is None:
        if options.events is not options.ranges:
            raise UsageError(
                "--events requires --ranges, and --ranges requires --events",
                code="bad_option",
                hint="give both or neither",
            )
        return None
    from memconform.longmemeval.pruning import (  # noqa: PLC0415 - rare
        Pruning,
        read_events,
        read_ranges,
    )

    pruning = Pruning(read_events(options.events), read_ranges(options.ranges))
    pruning.require_known_ids(survey.queries)
    return pruning
