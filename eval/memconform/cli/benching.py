"""From the command line of `bench` to what is carried out."""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from memconform.bench.daemon_system import DaemonSystem
from memconform.bench.flat import flat_system
from memconform.bench.journal import Kept, read_kept
from memconform.bench.plan import BenchPlan, Survey, survey
from memconform.bench.records import BenchSettings
from memconform.bench.strategy import Strategy, strategies
from memconform.bench.system import System
from memconform.bench.tasks import Tasking
from memconform.cli.options import comma_separated, daemon_variables, request_headers
from memconform.cli.planning import ALL, built
from memconform.client.timing import Timeouts
from memconform.contract.core import Tuning
from memconform.contract.wire import JsonValue, Mode, describe_mismatch
from memconform.daemons.availability import Absence
from memconform.daemons.runner import Progress, SdkRunner, UpstreamKind
from memconform.datasets.benchmarks import Benchmark, open_benchmark
from memconform.datasets.errata import read_errata, refuse_unknown
from memconform.datasets.expansion import Join, expanded, read_keys
from memconform.datasets.pruning import Pruning, read_events, read_ranges
from memconform.datasets.registry import sample
from memconform.datasets.sampling import Holdout, QuerySelection, choose
from memconform.errors import MemconformError, UsageError, nearest
from memconform.runs.store import RunFolder, find_journal, new_run_id
from memconform.upstream.embedders import FEATURE_HASH, embedder_of

SUITES: Mapping[str, str | None] = {
    "sample": None,
    "locomo": "locomo",
    "longmemeval": "longmemeval",
    "wmb": "wmb",
    "file": None,
}
"""Suites, and the format that each is read in; None where it is what the file looks like."""
_DEEPEST = 1_000


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The command line, typed; names are those of the flags."""

    suite: str
    data: str | None
    sdk: tuple[str, ...]
    no_skip: bool
    system: tuple[str, ...]
    modes: str
    ks: str
    index: Literal["isolated", "shared"]
    level: str | None
    session_doc: str | None
    part: str | None
    errata: Path | None
    keys: Path | None
    join: Join
    events: Path | None
    ranges: Path | None
    limit: int | None
    sample: int | None
    ids: tuple[str, ...]
    category: tuple[str, ...]
    holdout: Holdout
    seed: int
    fusion: str | None
    alpha: str | None
    rrf_k: str | None
    pool_factor: str | None
    pool_floor: str | None
    recency: str | None
    temporal: str | None
    upstream: UpstreamKind
    embed_base_url: str | None
    embed_model: str | None
    embed_dims: int | None
    query_prefix: str | None
    rerank: str | None
    env: tuple[str, ...]
    concurrency: int
    shuffle: int | None
    timeout: float
    require_agreement: bool
    resume: str | None
    header: tuple[str, ...]
    output: Path
    json_file: str | None
    markdown: str | None
    verbose: bool
    quiet: bool
    log_level: str


@dataclass(frozen=True, slots=True)
class Prepared:
    plan: BenchPlan
    folder: RunFolder
    kept: Kept
    absences: list[Absence]


async def prepared(options: BenchOptions, progress: Progress) -> Prepared:
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
    searched, variables = _strategies(options), daemon_variables(_variables(options))
    headers = request_headers(options.header)
    journal = None if options.resume is None else find_journal(options.output, options.resume)
    benchmark = _benchmark(options)
    if options.keys is not None:
        keys = read_keys(options.keys)
        benchmark.transform = lambda haystacks: expanded(haystacks, keys, options.join)
    found = survey(benchmark)
    settings, tasking = _asked(options, benchmark, found)
    runners, absences = await _runners(options, searched, variables, progress)
    model = options.embed_model or FEATURE_HASH
    flat = [
        flat_system(name, options.seed, lambda: embedder_of(model))
        for name in dict.fromkeys(options.system)
    ]
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
        survey=found,
        settings=settings,
        tasking=tasking,
        systems=systems,
        seed=options.seed,
        concurrency=options.concurrency,
        shuffle=options.shuffle,
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        resumed=journal,
    )
    identities = {system.name: system.identity for system in systems}
    try:
        kept = Kept() if journal is None else read_kept(journal, settings, identities)
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
    if options.data is None:
        raise UsageError(
            f"--suite {options.suite} needs --data",
            code="no_data",
            hint="memconform datasets fetch downloads the public ones",
        )
    return open_benchmark(Path(options.data), SUITES[options.suite], given)


def _asked(
    options: BenchOptions, benchmark: Benchmark, found: Survey
) -> tuple[BenchSettings, Tasking]:
    ks = _cuts(options.ks)
    selection = QuerySelection(
        ids=comma_separated(options.ids),
        categories=options.category,
        limit=options.limit,
        sample=options.sample,
        seed=options.seed,
        holdout=options.holdout,
    )
    chosen = choose(benchmark, selection)
    disputed = None
    if options.errata is not None:
        errata = read_errata(options.errata)
        refuse_unknown(errata, found.queries)
        disputed = frozenset(errata)
    pruning = _pruning(options, found)
    settings = BenchSettings(
        format=benchmark.format.name,
        options=dict(benchmark.options),
        content_sha256=found.content_sha256,
        chosen_sha256=_digest(chosen),
        disputed_sha256=None if disputed is None else _digest(disputed),
        pruned_sha256=None if pruning is None else _digest(map(repr, pruning.ranges.items())),
        index=options.index,
        ks=ks,
    )
    tasking = Tasking(
        chosen=chosen,
        depth=ks[-1],
        official_gold=benchmark.format.official_gold,
        turns=benchmark.options.get("level") == "turn",
        disputed=disputed,
        pruning=pruning,
    )
    return settings, tasking


def _pruning(options: BenchOptions, found: Survey) -> Pruning | None:
    if options.events is None or options.ranges is None:
        if options.events is not options.ranges:
            raise UsageError(
                "--events and --ranges prune together",
                code="bad_option",
                hint="give both, or none",
            )
        return None
    pruning = Pruning(read_events(options.events), read_ranges(options.ranges))
    pruning.refuse_unknown(found.queries)
    return pruning


async def _runners(
    options: BenchOptions,
    searched: Sequence[Strategy],
    variables: Mapping[str, str],
    progress: Progress,
) -> tuple[list[SdkRunner], list[Absence]]:
    if not options.sdk:
        return [], []
    present, absences = await built(options.sdk, no_skip=options.no_skip)
    runners = []
    for runner, _ in present:
        try:
            runner.use_upstream(options.upstream)
            runner.use_variables(variables)
            _refuse_unclaimed(runner, searched)
            runners.append(runner)
        except UsageError as error:
            if ALL not in options.sdk or options.no_skip:
                raise
            progress(f"{runner.name} is left out: {error.message}")
            absences.append(Absence(runner.name, error))
    if not runners:
        raise absences[0].error
    return runners, absences


def _refuse_unclaimed(runner: SdkRunner, searched: Sequence[Strategy]) -> None:
    if runner.modes is None:
        return
    served = (*runner.modes, *runner.optional_modes)
    for strategy in searched:
        if strategy.mode not in served:
            raise UsageError(
                f"{runner.name} does not claim mode {strategy.label}",
                code="mode_not_claimed",
                hint=f"it claims {', '.join(served)}; a reranker is there with --upstream scripted",
            )


def _cuts(text: str) -> list[int]:
    """The ks of `-k`, ascending, each once."""
    parts = comma_separated([text])
    if not parts or not all(part.isascii() and part.isdigit() for part in parts):
        raise UsageError(f"-k {text} is no list of numbers", code="bad_k", hint="write -k 5,10")
    ks = sorted({int(part) for part in parts})
    if not 1 <= ks[0] <= ks[-1] <= _DEEPEST:
        raise UsageError(
            f"-k {text}: a cut is at 1 to {_DEEPEST}", code="bad_k", hint="write -k 5,10"
        )
    return ks


def _strategies(options: BenchOptions) -> tuple[Strategy, ...]:
    modes = []
    for name in comma_separated([options.modes]):
        if name not in list(Mode):
            raise UsageError(
                f"--modes {name} is no mode",
                code="bad_mode",
                hint=nearest(name, [m.value for m in Mode]) or f"there are {', '.join(Mode)}",
            )
        modes.append(Mode(name))
    if options.rerank not in (None, "none"):
        modes.append(Mode.HYBRID_RERANK)
    sweeps: dict[str, list[JsonValue]] = {
        "fusion": list(comma_separated([options.fusion or ""])),
        "alpha": _numbers("--alpha", options.alpha),
        "rrfK": _numbers("--rrf-k", options.rrf_k),
        "poolFactor": _numbers("--pool-factor", options.pool_factor),
        "poolFloor": _numbers("--pool-floor", options.pool_floor),
        "recency": _json("--recency", options.recency),
        "temporal": _json("--temporal", options.temporal),
    }
    if sweeps["rrfK"] and "rrf" not in sweeps["fusion"]:
        raise UsageError(
            "--rrf-k is of --fusion rrf", code="bad_tuning", hint="add --fusion minmax,rrf"
        )
    found = strategies(modes, sweeps)
    try:
        for strategy in found:
            Tuning.model_validate(strategy.tuning)
    except ValidationError as error:
        raise UsageError(
            f"tuning: {describe_mismatch(error)}", code="bad_tuning", hint="see core.tuning"
        ) from error
    if not found:
        raise UsageError("--modes names none", code="bad_mode", hint="write --modes bm25,hybrid")
    return found


def _numbers(flag: str, text: str | None) -> list[JsonValue]:
    try:
        return [json.loads(part) for part in comma_separated([text or ""])]
    except ValueError as error:
        raise UsageError(
            f"{flag} {text} is no list of numbers", code="bad_tuning", hint=f"write {flag} 1,2"
        ) from error


def _json(flag: str, text: str | None) -> list[JsonValue]:
    try:
        return [] if text is None else [json.loads(text)]
    except ValueError as error:
        raise UsageError(
            f"{flag} {text} is no JSON", code="bad_tuning", hint=f"write {flag} true"
        ) from error


def _variables(options: BenchOptions) -> list[str]:
    """`NAME=VALUE` for the flags that choose the daemon's services; `--env` goes before them."""
    served = options.embed_base_url is not None or options.upstream != "own" or not options.sdk
    if options.embed_model is not None and not served:
        raise UsageError(
            "--embed-model needs a server that has it",
            code="no_embedder",
            hint="add --upstream scripted, or --embed-base-url",
        )
    if options.embed_base_url is not None and options.embed_model is None:
        raise UsageError(
            "--embed-base-url needs --embed-model", code="no_embedder", hint="name its model"
        )
    given = {
        "JB_EMBED_PROVIDER": "openai" if options.embed_base_url else None,
        "OPENAI_BASE_URL": options.embed_base_url,
        "JB_EMBED_MODEL": options.embed_model,
        "JB_EMBED_QUERY_PREFIX": options.query_prefix,
    }
    if options.rerank is not None:
        url = options.rerank if options.rerank not in ("none", "llm") else None
        if url is not None and not url.startswith(("http://", "https://")):
            raise UsageError(
                f"--rerank {url} is none of none, llm and an address",
                code="bad_rerank",
                hint="write --rerank http://127.0.0.1:8080/rerank",
            )
        given |= {
            "JB_RERANK_PROVIDER": "http" if url else options.rerank,
            "JB_RERANK_URL": url,
        }
    return [*(f"{name}={value}" for name, value in given.items() if value), *options.env]


def _digest(names: Iterable[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()
