"""From the flags of `bench` to the systems that it measures: daemons, baselines and logs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from memconform.adapters.program import AdapterProgram, find_system, known_systems, load_system
from memconform.bench.adapter_system import AdapterSystem
from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.log_system import LogSystem
from memconform.bench.retrieval_log import read_log
from memconform.bench.strategy import Strategy
from memconform.bench.system import BASELINES, System
from memconform.cli.bench.options import BenchOptions
from memconform.cli.bench.search_settings import cuts, embedder_for
from memconform.cli.sdks import ALL, OF_ONE_SDK, build_sdks
from memconform.cli.values import configure_runner
from memconform.client.timings import Timeouts
from memconform.contract.dialect import ranked_by
from memconform.daemons.availability import SkippedSdk
from memconform.daemons.discovery import known_sdks, working_folder
from memconform.daemons.sdk_runner import Progress, SdkRunner
from memconform.datasets.benchmarks import Benchmark
from memconform.errors import DaemonError, UsageError
from memconform.storage.folders import RunFolder

_LOG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def daemon_system(
    options: BenchOptions,
    runner: SdkRunner,
    strategies: tuple[Strategy, ...],
    headers: Mapping[str, str],
    folder: RunFolder,
) -> DaemonSystem:
    """The daemon of an SDK as a system of the run in `folder`."""
    return DaemonSystem(
        runner=runner,
        strategies=strategies,
        folder=folder.path / runner.name,
        run_id=f"{folder.path.name}-{runner.name}",
        upstream=options.upstream,
        shared=options.index == "shared",
        concurrency=options.concurrency,
        timeouts=Timeouts(total=options.timeout, first=options.timeout, gap=options.timeout),
        headers=headers,
        rank_by=ranked_by(runner.dialect, options.rank_by),
        answer_depth=max(cuts(options.ks)) if options.answers else None,
    )


def open_baselines(
    options: BenchOptions, benchmark: Benchmark, variables: Mapping[str, str]
) -> list[System]:
    """The baselines of `--system`."""
    embedder = embedder_for(options, variables)
    names = [name for name in dict.fromkeys(options.system) if name in BASELINES]
    if not names:
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
        for name in names
    ]


def find_adapters(options: BenchOptions, progress: Progress) -> list[AdapterProgram]:
    """The systems of `--system` that have an adapter.

    `all` leaves out those that lack a language model, with a notice.

    Raises:
        UsageError: `unknown_system`, `no_embedder`, `one_name_twice`, `bad_option`, or as
            `load_system`.
    """
    folder = working_folder()
    reserved = _reserved_names() if options.system else {}
    programs: list[AdapterProgram] = []
    left_out: list[str] = []
    for reference in options.system:
        if reference in BASELINES:
            continue
        if reference != ALL:
            paths = [find_system(reference, folder, also=(ALL, *BASELINES))]
        elif not (paths := list(known_systems(folder).values())):
            raise UsageError(
                "no sdks/adapters here, whose systems are `all`",
                code="unknown_system",
                hint="run it in a checkout of memconform, or give the path of a system.toml",
            )
        for each in paths:
            program = load_system(each)
            if reference == ALL and program.manifest.lacks_model:
                left_out.append(program.name)
                continue
            if any(program.is_same(other) for other in programs):
                continue
            if (owner := reserved.get(program.name)) is not None:
                raise UsageError(
                    f"{each}: the name {program.name!r} is that of {owner}",
                    code="one_name_twice",
                    hint="change `name` in its manifest",
                )
            programs.append(program)
            program.require_services(
                scripted=options.upstream == "scripted", embed_model=options.embed_model or ""
            )
    named = {program.name for program in programs}
    if unnamed := [name for name in left_out if name not in named]:
        progress(f"left out of `all`, because they lack a language model: {', '.join(unnamed)}")
    if programs and options.events is not None:
        raise UsageError(
            "--events restricts what is searched for a question, which no adapter can do",
            code="bad_option",
            hint="omit it, or --system",
        )
    return programs


async def install_adapters(
    options: BenchOptions, programs: Sequence[AdapterProgram], progress: Progress
) -> tuple[dict[str, str], list[SkippedSdk]]:
    """Install the packages of adapters, once; skip systems of `all` that cannot be installed.

    Returns:
        The interpreter of each, by name, and what was skipped.

    Raises:
        DaemonError: as `AdapterProgram.install`, for a system that was named, or if none is
            left.
    """
    of_all = known_systems(working_folder()) if ALL in options.system else {}
    interpreters, skipped = {}, []
    for program in programs:
        if loose := program.unpinned():
            progress(f"{program.name}: {', '.join(loose)} without a version: later rows may differ")
        try:
            interpreters[program.name] = await program.install(progress)
        except DaemonError as error:
            if options.no_skip or program.name in options.system or program.name not in of_all:
                raise
            progress(f"{program.name} is skipped: {error.message}")
            skipped.append(SkippedSdk(program.name, error, is_named=False))
    if skipped and not interpreters:
        raise skipped[0].error
    return interpreters, skipped


def adapter_systems(
    options: BenchOptions,
    programs: Sequence[AdapterProgram],
    interpreters: Mapping[str, str],
    folder: Path,
) -> list[AdapterSystem]:
    """The systems whose packages are installed."""
    return [
        AdapterSystem(
            program,
            interpreters[program.name],
            folder / program.name,
            f"{folder.name}-{program.name}",
            scripted=options.upstream == "scripted",
            embed_model=options.embed_model or "",
        )
        for program in programs
        if program.name in interpreters
    ]


def require_distinct_names(names: Iterable[str]) -> None:
    """Raise UsageError `one_name_twice` if one row would be shown in the place of another."""
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(
                f"{count} systems are called {name}",
                code="one_name_twice",
                hint="change `name` in one manifest, or in --log NAME=FILE",
            )


def _has_official_items(options: BenchOptions, benchmark: Benchmark) -> bool:
    """Whether `flat-bm25` indexes what the benchmark's released code indexes.

    It does unless another text was asked for, or keys are added to the items.
    """
    return (
        benchmark.format.official_sessions is not None
        and options.session_doc in (None, "official")
        and options.keys is None
    )


def read_logs(options: BenchOptions) -> list[LogSystem]:
    """Read the logs of `--log NAME=FILE`.

    Raises:
        UsageError: `bad_option`, `one_name_twice`, and as `read_log`.
    """
    logs: dict[str, LogSystem] = {}
    reserved = _reserved_names() if options.log else {}
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
                f"--log {name}=…: the name is that of {reserved[name]}",
                code="one_name_twice",
                hint="choose another name in --log NAME=FILE",
            )
        logs[name] = LogSystem(name, read_log(Path(file)))
    return list(logs.values())


def _reserved_names() -> dict[str, str]:
    """Names that only an SDK, a baseline or all systems have, and which of these it is."""
    sdks = dict.fromkeys(known_sdks(working_folder()), "an SDK")
    return sdks | dict.fromkeys((ALL, *BASELINES), "a baseline, or of all systems")


async def build_runners(
    options: BenchOptions,
    strategies: Sequence[Strategy],
    variables: Mapping[str, str],
    progress: Progress,
) -> tuple[list[SdkRunner], list[SkippedSdk]]:
    """Build the SDKs that the flags name; those that cannot be used are skipped, unless none is.

    Raises:
        UsageError: if no SDK claims what is asked of it (`mode_not_claimed`).
        DaemonError: if no SDK can be built, or with `--no-skip` one cannot.
    """
    if not options.sdk:
        return [], []
    present, skipped = await build_sdks(options.sdk, no_skip=options.no_skip, one_by_one=True)
    runners = []
    for runner, _ in present:
        try:
            configure_runner(runner, options.upstream, variables)
            _require_claimed_modes(runner, strategies, options)
            runner.use_modes([each.mode for each in strategies if each.mode is not None])
            runners.append(runner)
        except UsageError as error:
            is_named = ALL not in options.sdk
            if options.no_skip or (is_named and error.code not in OF_ONE_SDK):
                raise
            progress(f"{runner.name} is skipped: {error.message}")
            skipped.append(SkippedSdk(runner.name, error, is_named=is_named))
    if not runners:
        raise skipped[0].error
    return runners, skipped


def require_known_builds(runners: Iterable[SdkRunner]) -> None:
    """Raise UsageError (`resume_unknown_build`) for an SDK whose build has no digest."""
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
    has_service = options.embed_base_url is not None or options.rerank not in (None, "none")
    scripted_modes = runner.scripted_modes if has_service else ()
    services = "" if has_service else "give --embed-base-url or --rerank"
    for strategy in strategies:
        if strategy.mode is not None:
            more = services if strategy.mode in runner.scripted_modes else ""
            runner.require_claimed(strategy.mode, also=scripted_modes, more=more)
