"""`memconform run`."""

import asyncio
import re
import sys
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.options import (
    SECONDS,
    cancel_on_signals,
    configure_logs,
    floors,
    json_file,
    json_target,
    log_level,
    output,
    read_floors,
    request_headers,
    schema,
    upstream,
)
from memconform.client.timing import Timeouts
from memconform.contract.wire import Mode, Profile
from memconform.daemons.availability import Absence, build_all
from memconform.daemons.discovery import find_runner, known_sdks, working_folder
from memconform.daemons.runner import SdkRunner, UpstreamKind
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.datasets.selection import Selected, Selection, select
from memconform.errors import ExitCode, UsageError, gravest
from memconform.parity.agreement import Agreement, compare
from memconform.reports.console import ConsoleReport
from memconform.reports.machine import RunReport, agreement_banner, banner, write_report
from memconform.reports.matrix import show_matrix
from memconform.runs.corpus import corpus_digest
from memconform.runs.engine import execute
from memconform.runs.events import RunFinished
from memconform.runs.journal import read_header
from memconform.runs.plan import Plan, Settings
from memconform.runs.seeding import refuse_foreign_brain
from memconform.runs.store import find_journal
from memconform.scenarios import SCENARIOS
from memconform.scoring.scorer import ExactScorer

_BRAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True)
class _Options:
    """The command line, typed; names are those of the flags."""

    sdk: tuple[str, ...]
    no_skip: bool
    scenario: str
    mode: str
    dataset: str
    scorer: str
    limit: int | None
    ids: tuple[str, ...]
    tag: tuple[str, ...]
    output: Path
    port: int
    floor: tuple[str, ...]
    brain: str
    i_own_this_brain: bool
    top_k: int
    candidate_k: int
    rerank_top_n: int
    seed_reference_brain: bool
    upstream: UpstreamKind
    corpus: Path | None
    concurrency: int
    timeout: float
    timeout_connect: float
    timeout_first: float
    timeout_gap: float
    allow_fallback: bool
    repeat: int
    json_file: str | None
    quiet: bool
    resume: str | None
    header: tuple[str, ...]
    log_level: str


@click.command("run", context_settings={"show_default": True})
@click.option(
    "--sdk",
    multiple=True,
    required=True,
    metavar="SDK",
    help="A known name, a path to sdk.toml, package.module:Class, or url:http://127.0.0.1:PORT."
    " May be given several times; `all` is every known one that can run here.",
)
@click.option("--no-skip", is_flag=True, help="Fail where an SDK of `--sdk all` cannot run here.")
@click.option("--scenario", type=click.Choice(list(SCENARIOS)), default="ask-basic")
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in Mode]),
    default="auto",
    help="How to retrieve; passed on as it is.",
)
@click.option("--dataset", default="lme", metavar="SET", help="A path, or a shipped name.")
@click.option("--scorer", type=click.Choice(["exact", "judge"]), default="judge")
@click.option("--limit", type=click.IntRange(min=1), help="So many questions, spread evenly.")
@click.option("--ids", multiple=True, metavar="ID,…", help="Only these questions.")
@click.option("--tag", multiple=True, metavar="TAG", help="Only questions with one of these tags.")
@output
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="0 picks a free one; with several SDKs N, N+1, …",
)
@floors
@click.option("--brain", default="eval", help="The brain to ask.")
@click.option(
    "--i-own-this-brain",
    is_flag=True,
    help="Let seeding empty any brain of a url: daemon, not only mc-….",
)
@click.option("--top-k", type=click.IntRange(1, 1000), default=5)
@click.option("--candidate-k", type=click.IntRange(min=0), default=0, help="0: the daemon's own.")
@click.option("--rerank-top-n", type=click.IntRange(min=0), default=0, help="0: the daemon's own.")
@click.option(
    "--seed-reference-brain",
    is_flag=True,
    help="Recreate the brain from the dataset's reference answers, one document a row.",
)
@click.option(
    "--corpus",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Recreate the brain from the files of a folder; the dataset's own name is its corpus.",
)
@upstream
@click.option("--concurrency", type=click.IntRange(1, 256), default=1, help="Questions in flight.")
@click.option("--timeout", type=SECONDS, default=120.0, help="Seconds for a whole question.")
@click.option("--timeout-connect", type=SECONDS, default=5.0, help="Seconds to connect.")
@click.option("--timeout-first", type=SECONDS, default=30.0, help="Seconds to the first event.")
@click.option("--timeout-gap", type=SECONDS, default=30.0, help="Seconds between two events.")
@click.option(
    "--allow-fallback", is_flag=True, help="Score answers of another mode than the one asked for."
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, help="Put each question so many times."
)
@json_file
@click.option(
    "--resume",
    metavar="RUN",
    help="Go on from a run that was cut short, a run id or its folder; what it measured is kept,"
    " what it did not is asked again.",
)
@click.option(
    "--header",
    multiple=True,
    metavar="NAME:VALUE",
    help="Send it with every request; MEMCONFORM_AUTH_TOKEN sends a bearer token. Kept secret.",
)
@click.option("--quiet", is_flag=True, help="No progress and no table.")
@schema(RunReport)
@log_level
def command(**flags: object) -> ExitCode:
    """Start daemons, put a dataset to them, score the answers, hold the floor.

    \b
    Exit codes: 0 ok, 1 below the floor, 2 usage, 3 a daemon failed,
    4 nothing selected, 70 internal error, 130 interrupted.
    """
    options = _Options(**flags)  # type: ignore[arg-type] # click has checked every flag
    configure_logs(options.log_level)
    return asyncio.run(_run(options))


async def _run(options: _Options) -> ExitCode:
    cancel_on_signals()
    selected = _selected(options)
    runners, absences = await _runners(options)
    plans = [_plan(options, selected, runner, n) for n, runner in enumerate(runners)]
    several = len(plans) > 1
    finished: list[RunFinished] = []
    agreement: Agreement | None = None
    code = gravest(absence.error.exit_code for absence in absences if not runners)
    # With --json - standard output is the report alone.
    to_stderr = options.json_file == "-"
    try:
        for plan, runner in zip(plans, runners, strict=True):
            end = await _run_one(plan, runner, quiet=options.quiet, brief=several)
            finished.append(end)
            click.echo(f"{banner(end.summary)} -> {end.copy}", err=to_stderr)
            if end.summary.exit_code == ExitCode.INTERRUPTED:
                break
        if len(finished) > 1:
            runs = [(end.summary.sdk, end.result) for end in finished]
            answers = SCENARIOS[options.scenario].text_kind == "answer"
            agreement = await asyncio.to_thread(compare, runs, answers=answers)
            click.echo(agreement_banner(agreement), err=to_stderr)
        if not options.quiet or absences:
            show_matrix([end.summary for end in finished], absences, agreement)
    finally:
        # Whatever stops a later run, the report holds those that ended before it.
        code = gravest([code, *(ExitCode(end.summary.exit_code) for end in finished)])
        if options.json_file is not None and finished:
            with json_target(options.json_file) as target:
                write_report(
                    target,
                    [end.result for end in finished],
                    code,
                    absences=absences,
                    agreement=agreement,
                )
    return code


async def _runners(options: _Options) -> tuple[list[SdkRunner], list[Absence]]:
    """The runners of `--sdk`; of `all`, those that can be built here."""
    folder = working_folder()
    if "all" not in options.sdk:
        return [find_runner(reference, folder) for reference in options.sdk], []
    if len(options.sdk) > 1:
        raise UsageError(
            "--sdk all is every SDK there is",
            code="all_and_more",
            hint="give all alone, or name the SDKs",
        )
    every = [find_runner(name, folder) for name in known_sdks(folder)]
    if not every:
        raise UsageError(
            "there is no SDK: the reference SDKs need a checkout of the project",
            code="unknown_sdk",
            hint="name SDKs in a memconform.toml, or give --sdk a path to sdk.toml",
        )
    runners, absences = await build_all(every, lambda line: click.echo(f"  {line}", err=True))
    if absences and options.no_skip:
        raise absences[0].error
    return runners, absences


def _selected(options: _Options) -> Selected:
    if options.scorer == "judge":
        raise UsageError(
            "the judge scorer is not there yet",
            code="no_judge",
            hint="use --scorer exact",
        )
    if options.resume is not None and len(options.sdk) > 1:
        raise UsageError(
            "--resume goes on with one run, and so with one --sdk",
            code="resume_many",
            hint="resume run after run",
        )
    if options.seed_reference_brain and options.corpus is not None:
        raise UsageError(
            "--seed-reference-brain and --corpus both fill the brain",
            code="two_seeds",
            hint="give one of them",
        )
    ids = tuple(part for given in options.ids for part in given.split(",") if part)
    if options.ids and not ids:
        raise UsageError("--ids names no question", code="no_ids", hint="write --ids A,B")
    if not _BRAIN_ID.fullmatch(options.brain) or options.brain in (".", ".."):
        raise UsageError(
            f"--brain {options.brain!r} is no brain id",
            code="bad_brain",
            hint="1 to 128 of A-Z a-z 0-9 . _ -, and not . or ..",
        )
    if options.port and options.port + len(options.sdk) - 1 > 65535:
        raise UsageError(
            f"--port {options.port} leaves no port for the last SDK",
            code="bad_port",
            hint="ports are taken upwards from --port, one an SDK",
        )
    if not str(options.output).isprintable():
        raise UsageError("--output is no printable path", code="bad_output", hint="rename it")
    dataset = open_dataset(options.dataset)
    selected = select(dataset, Selection(ids=ids, tags=options.tag, limit=options.limit))
    ExactScorer().refuse_unscorable(selected)
    return selected


def _corpus(options: _Options, selected: Selected) -> Path | None:
    """The folder of `--corpus`, which may be the name of the dataset whose corpus it is."""
    named = options.corpus is not None and str(options.corpus) == selected.dataset.name
    return (corpus_of(selected.dataset) or options.corpus) if named else options.corpus


def _plan(options: _Options, selected: Selected, runner: SdkRunner, index: int) -> Plan:
    mode = Mode(options.mode)
    runner.use_upstream(options.upstream)
    _refuse_unclaimed(runner, mode, options)
    corpus = _corpus(options, selected)
    if options.seed_reference_brain or corpus:
        refuse_foreign_brain(runner, options.brain, allowed=options.i_own_this_brain)
    settings = Settings(
        dataset=selected.dataset.name,
        dataset_sha256=selected.dataset.sha256,
        questions=selected.size,
        rows=None if selected.rows is None else sorted(selected.rows),
        scenario=options.scenario,
        mode=mode,
        scorer=options.scorer,
        brain=options.brain,
        top_k=options.top_k,
        candidate_k=options.candidate_k,
        rerank_top_n=options.rerank_top_n,
        allow_fallback=options.allow_fallback,
        repeat=options.repeat,
        seeding="reference" if options.seed_reference_brain else _digest_name(corpus),
        upstream=options.upstream,
        build_hash=runner.build_hash(),
    )
    return Plan(
        settings=settings,
        selected=selected,
        output=options.output,
        floors=read_floors(options.floor),
        seeding="reference" if options.seed_reference_brain else corpus,
        port=options.port + index if options.port else 0,
        concurrency=options.concurrency,
        timeouts=Timeouts(
            total=options.timeout,
            connect=options.timeout_connect,
            first=options.timeout_first,
            gap=options.timeout_gap,
        ),
        headers=request_headers(options.header),
        command=tuple(part.encode("utf-8", "replace").decode() for part in sys.argv),
        resumed=_resumed(options, settings, runner.name),
    )


def _digest_name(corpus: Path | None) -> str | None:
    return None if corpus is None else f"corpus:{corpus_digest(corpus)}"


def _resumed(options: _Options, settings: Settings, sdk: str) -> Path | None:
    """The journal to go on from.

    Raises:
        UsageError: where that run asked something else.
    """
    if options.resume is None:
        return None
    journal = find_journal(options.output, options.resume)
    header = read_header(journal)
    if header.sdk != sdk or header.settings_sha256 != settings.digest():
        raise UsageError(
            f"{journal.parent} was run with other settings",
            code="resume_mismatch",
            hint="its manifest.json shows them: SDK, dataset, selection, scenario, mode, k's,"
            " seeding, the daemon's build and the contract must be the same",
        )
    return journal


def _refuse_unclaimed(runner: SdkRunner, mode: Mode, options: _Options) -> None:
    needs_ask = SCENARIOS[options.scenario].text_kind == "answer"
    if needs_ask and Profile.ASK not in runner.profiles:
        raise UsageError(
            f"{runner.name} does not claim the profile ask, which {options.scenario} needs",
            code="profile_not_claimed",
            hint="use --scenario search-retrieve-only",
        )
    served = None if runner.modes is None else (*runner.modes, *runner.optional_modes)
    if served is not None and mode not in served and not options.allow_fallback:
        raise UsageError(
            f"{runner.name} does not claim mode {mode.value}",
            code="mode_not_claimed",
            hint=f"it claims {', '.join(served)}; or use --allow-fallback",
        )


async def _run_one(plan: Plan, runner: SdkRunner, *, quiet: bool, brief: bool) -> RunFinished:
    with ConsoleReport(quiet=quiet, brief=brief) as report:
        async with aclosing(execute(plan, runner)) as events:
            async for event in events:
                report.handle(event)
                if isinstance(event, RunFinished):
                    return event
    raise RuntimeError("the run ended without its last event")
