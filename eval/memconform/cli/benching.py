"""From the command line of `bench` to what is carried out."""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memconform.bench.baselines import baseline_system
from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.journal import ResumeState, load_resume_state
from memconform.bench.plan import BenchmarkScan, BenchPlan, scan
from memconform.bench.records import BenchSettings
from memconform.bench.strategy import Strategy
from memconform.bench.system import System
from memconform.bench.tasks import QueryPlanner
from memconform.cli.bench_options import SUITES, BenchOptions
from memconform.cli.planning import ALL, build_sdks
from memconform.cli.searching import cuts, embedder_for, searched_strategies, service_variables
from memconform.cli.values import comma_separated, daemon_variables, request_headers
from memconform.client.timing import Timeouts
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.runner import Progress, SdkRunner
from memconform.datasets.benchmarks import Benchmark, open_benchmark
from memconform.datasets.errata import read_errata, require_known_ids
from memconform.datasets.expansion import expanded, read_keys
from memconform.datasets.pruning import Pruning, read_events, read_ranges
from memconform.datasets.registry import sample
from memconform.datasets.sampling import QuerySelection, sample_queries
from memconform.datasets.sources import data_folder, fetched, known_sources
from memconform.errors import MemconformError, UsageError
from memconform.storage.folders import RunFolder, find_journal, new_run_id


@dataclass(frozen=True, slots=True)
class Prepared:
    plan: BenchPlan
    folder: RunFolder
    kept: ResumeState
    absences: list[SkippedSdk]


async def plan_bench(options: BenchOptions, progress: Progress) -> Prepared:
    """What the command line asks for, with SDKs built.

    Raises:
        UsageError: where it cannot be carried out as it is.
        NothingSelectedError: where no query is left.
        DaemonError: where an SDK that was named cannot be built.
    """
    if not options.sdk and not options.system:
        raise UsageError(
            "there is nothing to measure", code="no_system", hint="give --sdk all, or --system"
        )
    searched, variables = searched_strategies(options), daemon_variables(service_variables(options))
    headers = request_headers(options.header)
    journal = None if options.resume is None else find_journal(options.output, options.resume)
    benchmark = _benchmark(options)
    if options.join is not None and options.keys is None:
        raise UsageError("--join needs --keys", code="bad_option", hint="give the keys' file")
    if options.keys is not None:
        join = options.join or "separate"
        keys = read_keys(options.keys)
        benchmark.transform = lambda haystacks: expanded(haystacks, keys, join)
    found = scan(benchmark)
    settings, planner = _asked(options, benchmark, found)
    runners, absences = await _runners(options, searched, variables, progress)
    embedder = embedder_for(options, variables)
    flat = [
        baseline_system(name, options.seed, embedder, options.query_prefix or "")
        for name in dict.fromkeys(options.system)
    ]
    _require_distinct_names(runners, options)
    if journal is not None:
        _require_known_builds(runners)
    run_id = new_run_id(datetime.now(UTC), "bench", options.suite)
    folder = RunFolder(options.output, run_id)
    daemons = [
        DaemonSystem(
            runner=runner,
            strategies=searched,
            folder=folder.path / runner.name,
            run_id=f"{run_id}-{runner.name}",
            upstream=options.upstream,
            shared=options.index == "shared",
            concurrency=options.concurrency,
            timeouts=Timeouts(total=options.timeout, first=options.timeout, gap=options.timeout),
            headers=headers,
        )
        for runner in runners
    ]
    systems: tuple[System, ...] = (*daemons, *flat)
    plan = BenchPlan(
        suite=options.suite,
        benchmark=benchmark,
        scan=found,
        settings=settings,
        planner=planner,
        systems=systems,
        seed=options.seed,
        concurrency=options.concurrency,
        shuffle=options.shuffle,
        transformations=_made(options),
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        resumed=journal,
    )
    identities = {system.name: system.identity for system in systems}
    try:
        kept = (
            ResumeState() if journal is None else load_resume_state(journal, settings, identities)
        )
    except MemconformError:
        folder.remove()
        raise
    return Prepared(plan, folder, kept, absences)


def _benchmark(options: BenchOptions) -> Benchmark:
    given = {"level": options.level, "session_doc": options.session_doc, "part": options.part}
    if options.suite == "sample":
        if options.data is not None:
            raise UsageError(
                "the sample ships with memconform, and takes no --data",
                code="bad_option",
                hint="--suite file takes any file",
            )
        return open_benchmark(sample(), None, given)
    sources = known_sources()
    fitting = [name for name, each in sources.items() if each.format == SUITES[options.suite]]
    if options.data is None:
        raise UsageError(
            f"--suite {options.suite} needs --data",
            code="no_data",
            hint=f"give a path, or what was fetched: {', '.join(fitting or sources)}",
        )
    path = Path(options.data)
    if not path.exists() and options.data in sources:
        found = fetched(options.data)
        if found is None:
            raise UsageError(
                f"{options.data} is not in {data_folder()}",
                code="not_fetched",
                hint=f"memconform datasets fetch {options.data}",
            )
        path = found
    try:
        return open_benchmark(path, SUITES[options.suite], given)
    except UsageError as error:
        if error.code == "wrong_format":
            error.hint = (
                f"--suite file, or the one it is of: {', '.join(filter(None, SUITES.values()))}"
            )
        raise


def _asked(
    options: BenchOptions, benchmark: Benchmark, found: BenchmarkScan
) -> tuple[BenchSettings, QueryPlanner]:
    ks = cuts(options.ks)
    selection = QuerySelection(
        ids=comma_separated(options.ids),
        categories=options.category,
        limit=options.limit,
        sample=options.sample,
        seed=options.seed,
        holdout=options.holdout,
    )
    chosen = sample_queries(benchmark, selection)
    disputed = None
    if options.errata is not None:
        errata = read_errata(options.errata)
        require_known_ids(errata, found.queries)
        disputed = frozenset(errata)
    pruning = _pruning(options, found)
    settings = BenchSettings(
        format=benchmark.format.name,
        options=dict(benchmark.options),
        content_sha256=found.content_sha256,
        chosen_sha256=_digest(chosen),
        disputed_sha256=None if disputed is None else _digest(disputed),
        pruned_sha256=None if pruning is None else _digest(map(repr, _told(pruning))),
        index=options.index,
        ks=ks,
    )
    planner = QueryPlanner(
        query_ids=chosen,
        depth=ks[-1],
        official_gold=benchmark.format.official_gold,
        turns=benchmark.options.get("level") == "turn",
        disputed=disputed,
        pruning=pruning,
    )
    return settings, planner


def _told(pruning: Pruning) -> Iterable[object]:
    """All that decides what is pruned."""
    return (*pruning.events.days.items(), *pruning.ranges.items(), pruning.slack)


def _made(options: BenchOptions) -> tuple[str, ...]:
    """What was made of the benchmark, and chosen from it, in words."""
    told: dict[str, object] = {
        f"keys of {options.keys} by {options.join}": options.keys,
        f"pruned by {options.events} and {options.ranges}": options.events,
        f"limit {options.limit}": options.limit,
        f"sample {options.sample} of seed {options.seed}": options.sample,
        f"{len(options.ids)} ids": options.ids,
        f"category {', '.join(options.category)}": options.category,
        f"holdout {options.holdout}": options.holdout != "all",
    }
    return tuple(words for words, given in told.items() if given)


def _pruning(options: BenchOptions, found: BenchmarkScan) -> Pruning | None:
    if options.events is None or options.ranges is None:
        if options.events is not options.ranges:
            raise UsageError(
                "--events and --ranges prune together",
                code="bad_option",
                hint="give both, or none",
            )
        return None
    pruning = Pruning(read_events(options.events), read_ranges(options.ranges))
    pruning.require_known_ids(found.queries)
    return pruning


async def _runners(
    options: BenchOptions,
    searched: Sequence[Strategy],
    variables: Mapping[str, str],
    progress: Progress,
) -> tuple[list[SdkRunner], list[SkippedSdk]]:
    if not options.sdk:
        return [], []
    present, absences = await build_sdks(options.sdk, no_skip=options.no_skip)
    runners = []
    for runner, _ in present:
        try:
            runner.use_upstream(options.upstream)
            runner.use_variables(variables)
            _require_claimed_modes(runner, searched, options)
            runners.append(runner)
        except UsageError as error:
            if ALL not in options.sdk or options.no_skip:
                raise
            progress(f"{runner.name} is skipped: {error.message}")
            absences.append(SkippedSdk(runner.name, error))
    if not runners:
        raise absences[0].error
    return runners, absences


def _require_distinct_names(runners: Iterable[SdkRunner], options: BenchOptions) -> None:
    for runner in runners:
        if runner.name in options.system:
            raise UsageError(
                f"an SDK and a system are both called {runner.name}",
                code="one_name_twice",
                hint="`name` in its sdk.toml is what counts",
            )


def _require_known_builds(runners: Iterable[SdkRunner]) -> None:
    for runner in runners:
        if runner.build_hash() is None:
            raise UsageError(
                f"it cannot be known whether {runner.name} is what it was",
                code="resume_unknown_build",
                hint="--resume is for SDKs that an sdk.toml describes",
            )


def _require_claimed_modes(
    runner: SdkRunner, searched: Sequence[Strategy], options: BenchOptions
) -> None:
    if runner.modes is None:
        return
    named = options.embed_base_url is not None or options.rerank not in (None, "none")
    served = (*runner.modes, *runner.optional_modes, *(runner.scripted_modes if named else ()))
    for strategy in searched:
        if strategy.mode not in served:
            raise UsageError(
                f"{runner.name} does not claim mode {strategy.label}",
                code="mode_not_claimed",
                hint=f"it claims {', '.join(served)}; or add --upstream scripted, --rerank",
            )


def _digest(names: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()
