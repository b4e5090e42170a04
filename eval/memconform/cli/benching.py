"""Plans a bench: resolves the command line into a benchmark, systems and settings."""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.journal import ResumeState, load_resume_state
from memconform.bench.log_system import LogSystem
from memconform.bench.plan import BenchmarkScan, BenchPlan, scan
from memconform.bench.records import BenchSettings
from memconform.bench.retrieval_log import read_log
from memconform.bench.strategy import Strategy
from memconform.bench.system import BASELINES, System
from memconform.bench.tasks import QueryPlanner
from memconform.cli.bench_errata import applied_errata, candidate_errata, corrected_items
from memconform.cli.bench_options import SUITES, BenchOptions
from memconform.cli.exporting import require_exportable
from memconform.cli.planning import ALL, build_sdks
from memconform.cli.searching import cuts, embedder_for, searched_strategies, service_variables
from memconform.cli.values import comma_separated, daemon_variables, request_headers
from memconform.client.timing import Timeouts
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.discovery import known_sdks, working_folder
from memconform.daemons.runner import Progress, SdkRunner
from memconform.datasets.benchmarks import Benchmark, open_benchmark
from memconform.datasets.errata import Errata
from memconform.datasets.expansion import expanded, read_keys
from memconform.datasets.pruning import Pruning, read_events, read_ranges
from memconform.datasets.registry import sample
from memconform.datasets.sampling import QuerySelection, sample_queries, select_queries
from memconform.datasets.sources import find_data, known_sources
from memconform.datasets.wmb import question_of
from memconform.errors import MemconformError, UsageError
from memconform.printing.plurals import plural
from memconform.storage.folders import RunFolder, find_journal, new_run_id

_LOG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


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
        UsageError: if a flag or a file is invalid, or flags contradict each other.
        NothingSelectedError: if no query is selected.
        DaemonError: if an SDK that was named cannot be built.
    """
    if not (options.sdk or options.system or options.log or wants_memories):
        raise UsageError(
            "no system to measure", code="no_system", hint="give --sdk all, --system or --log"
        )
    strategies = searched_strategies(options)
    variables = daemon_variables(service_variables(options))
    headers = request_headers(options.header)
    journal = None if options.resume is None else find_journal(options.output, options.resume)
    benchmark = _benchmark(options)
    if options.join is not None and options.keys is None:
        raise UsageError("--join needs --keys", code="bad_option", hint="add --keys FILE")
    if options.keys is not None:
        join = options.join or "separate"
        keys = read_keys(options.keys)
        benchmark.transform = lambda haystacks: expanded(haystacks, keys, join)
    logs = _logs(options)
    selection = _selection(options)
    chosen = None
    if options.index == "category":
        # Selected before the split, which changes the order that --limit and --holdout count in.
        chosen = sample_queries(benchmark, selection)
        benchmark.split_by_category(every=wants_memories)
    candidate = candidate_errata(options.errata, benchmark.format.name)
    corrected = corrected_items(candidate, benchmark)
    survey = scan(benchmark, corrected)
    for log in logs:
        log.require_known_questions(survey.queries)
    if chosen is None:
        # From the scan: reading LongMemEval S once more takes as long as ranking it by BM25.
        chosen = select_queries(survey.queries, selection)
    elif wants_memories:
        chosen = frozenset(query for query in survey.queries if question_of(query) in chosen)
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
    runners, skipped = await _runners(options, strategies, variables, progress)
    baselines = _baselines(options, variables, benchmark)
    _require_distinct_names(runners, options)
    require_exportable(
        options.export,
        rows=len(runners) * len(strategies) + len(baselines) + len(logs),
        format_name=benchmark.format.name,
    )
    if journal is not None:
        _require_known_builds(runners)
    run_id = new_run_id(datetime.now(UTC), "bench", options.suite)
    folder = RunFolder(options.output, run_id)
    daemons = [
        DaemonSystem(
            runner=runner,
            strategies=strategies,
            folder=folder.path / runner.name,
            run_id=f"{run_id}-{runner.name}",
            upstream=options.upstream,
            shared=options.index == "shared",
            concurrency=options.concurrency,
            timeouts=Timeouts(total=options.timeout, first=options.timeout, gap=options.timeout),
            headers=headers,
            rank_by=options.rank_by,
            answer_depth=max(cuts(options.ks)) if options.answers else None,
        )
        for runner in runners
    ]
    systems: tuple[System, ...] = (*daemons, *baselines, *logs, *adapters(folder.path))
    plan = BenchPlan(
        suite=options.suite,
        benchmark=benchmark,
        scan=survey,
        settings=settings,
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
    return PreparedBench(plan, folder, resume_state, skipped)


def _baselines(
    options: BenchOptions, variables: Mapping[str, str], benchmark: Benchmark
) -> list[System]:
    embedder = embedder_for(options, variables)
    if not options.system:
        return []
    from memconform.bench.baselines import baseline_system  # noqa: PLC0415 - numpy, 18 MiB

    return [
        baseline_system(
            name,
            options.seed,
            embedder,
            options.query_prefix or "",
            official_items=_has_official_items(options, benchmark),
        )
        for name in dict.fromkeys(options.system)
    ]


def _has_official_items(options: BenchOptions, benchmark: Benchmark) -> bool:
    """Whether `flat-bm25` indexes what the benchmark's released code indexes.

    It does unless another text was asked for, or keys are added to the items.
    """
    return (
        benchmark.format.official_sessions is not None
        and options.session_doc in (None, "official")
        and options.keys is None
    )


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
        ids=comma_separated(options.ids),
        categories=options.category,
        limit=options.limit,
        sample=options.sample,
        seed=options.seed,
        holdout=options.holdout,
    )


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
    pruning = _pruning(options, survey)
    settings = BenchSettings(
        format=benchmark.format.name,
        options=dict(benchmark.options),
        content_sha256=survey.content_sha256,
        chosen_sha256=_digest(chosen),
        disputed_sha256=None if errata is None else errata.digest(),
        pruned_sha256=None if pruning is None else _digest(map(repr, _pruning_inputs(pruning))),
        index=options.index,
        ks=ks,
        unit="memory" if wants_memories else "item",
    )
    planner = QueryPlanner(
        query_ids=chosen,
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


def _pruning_inputs(pruning: Pruning) -> Iterable[object]:
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


def _pruning(options: BenchOptions, survey: BenchmarkScan) -> Pruning | None:
    if options.events is None or options.ranges is None:
        if options.events is not options.ranges:
            raise UsageError(
                "--events and --ranges need each other",
                code="bad_option",
                hint="give both or neither",
            )
        return None
    pruning = Pruning(read_events(options.events), read_ranges(options.ranges))
    pruning.require_known_ids(survey.queries)
    return pruning


def _logs(options: BenchOptions) -> list[LogSystem]:
    """Read the logs of `--log NAME=FILE`."""
    logs: dict[str, LogSystem] = {}
    reserved = dict.fromkeys(known_sdks(working_folder()), "the SDK") if options.log else {}
    reserved |= dict.fromkeys((ALL, *BASELINES), "the system")
    for text in options.log:
        name, equals, file = text.partition("=")
        if not equals or not file or _LOG_NAME.fullmatch(name) is None:
            raise UsageError(
                f"--log {text} is not NAME=FILE",
                code="bad_option",
                hint="write --log contriever=FILE; a name has letters, digits, dots and hyphens",
            )
        if name in (*logs, *options.system):
            raise UsageError(
                f"two systems are called {name}",
                code="one_name_twice",
                hint="choose another name in --log NAME=FILE",
            )
        if name in reserved:
            raise UsageError(
                f"--log {name}=… would be shown as {reserved[name]} of that name",
                code="one_name_twice",
                hint="choose another name in --log NAME=FILE",
            )
        logs[name] = LogSystem(name, read_log(Path(file)))
    return list(logs.values())


async def _runners(
    options: BenchOptions,
    strategies: Sequence[Strategy],
    variables: Mapping[str, str],
    progress: Progress,
) -> tuple[list[SdkRunner], list[SkippedSdk]]:
    if not options.sdk:
        return [], []
    present, skipped = await build_sdks(options.sdk, no_skip=options.no_skip)
    runners = []
    for runner, _ in present:
        try:
            runner.use_upstream(options.upstream)
            runner.use_variables(variables)
            _require_claimed_modes(runner, strategies, options)
            runners.append(runner)
        except UsageError as error:
            if ALL not in options.sdk or options.no_skip:
                raise
            progress(f"{runner.name} is skipped: {error.message}")
            skipped.append(SkippedSdk(runner.name, error))
    if not runners:
        raise skipped[0].error
    return runners, skipped


def _require_distinct_names(runners: Iterable[SdkRunner], options: BenchOptions) -> None:
    names = (*options.system, *(log.partition("=")[0] for log in options.log))
    for runner in runners:
        if runner.name in names:
            raise UsageError(
                f"an SDK and another system are both called {runner.name}",
                code="one_name_twice",
                hint="change `name` in its sdk.toml",
            )


def _require_known_builds(runners: Iterable[SdkRunner]) -> None:
    for runner in runners:
        if runner.build_hash() is None:
            raise UsageError(
                f"cannot verify that {runner.name} is the same build as before",
                code="resume_unknown_build",
                hint="use --resume only with SDKs that have an sdk.toml",
            )


def _require_claimed_modes(
    runner: SdkRunner, strategies: Sequence[Strategy], options: BenchOptions
) -> None:
    if runner.modes is None:
        return
    has_service = options.embed_base_url is not None or options.rerank not in (None, "none")
    scripted_modes = runner.scripted_modes if has_service else ()
    served = (*runner.modes, *runner.optional_modes, *scripted_modes)
    for strategy in strategies:
        if strategy.mode not in served:
            raise UsageError(
                f"{runner.name} does not claim mode {strategy.label}",
                code="mode_not_claimed",
                hint=f"it claims {', '.join(served)}; or add --upstream scripted, --rerank",
            )


def _digest(names: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()
