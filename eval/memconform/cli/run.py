"""`memconform run`."""

import asyncio
import signal
import sys
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import click

from memconform.cli.options import (
    configure_logs,
    floors,
    json_target,
    log_level,
    output,
    read_floors,
    request_headers,
    schema,
)
from memconform.client.timing import Timeouts
from memconform.contract.wire import Mode, Profile
from memconform.daemons.discovery import find_runner
from memconform.daemons.runner import SdkRunner
from memconform.datasets.registry import open_dataset
from memconform.datasets.selection import Selected, Selection, select
from memconform.errors import ExitCode, UsageError, gravest
from memconform.reports.console import ConsoleReport
from memconform.reports.machine import banner, write_report
from memconform.runs.engine import execute
from memconform.runs.events import RunFinished
from memconform.runs.journal import read_header
from memconform.runs.plan import Plan, Settings
from memconform.runs.results import RunReport
from memconform.runs.seeding import corpus_digest, refuse_foreign_brain
from memconform.runs.store import find_journal
from memconform.scenarios import SCENARIOS
from memconform.scoring.scorer import ExactScorer


@dataclass(frozen=True, slots=True)
class _Options:
    """The command line, typed; names are those of the flags."""

    sdk: tuple[str, ...]
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
    corpus: Path | None
    concurrency: int
    timeout: float
    timeout_connect: float
    timeout_first: float
    timeout_gap: float
    allow_fallback: bool
    repeat: int
    json: str | None
    quiet: bool
    resume: str | None
    header: tuple[str, ...]
    log_level: str


_seconds = click.FloatRange(min=0, min_open=True)


@click.command("run", context_settings={"show_default": True})
@click.option(
    "--sdk",
    multiple=True,
    required=True,
    metavar="SDK",
    help="A known name, a path to sdk.toml, package.module:Class, or url:http://127.0.0.1:PORT."
    " May be given several times.",
)
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
    help="Recreate the brain from the files of a folder.",
)
@click.option("--concurrency", type=click.IntRange(1, 256), default=1, help="Questions in flight.")
@click.option("--timeout", type=_seconds, default=120.0, help="Seconds for a whole question.")
@click.option("--timeout-connect", type=_seconds, default=5.0, help="Seconds to connect.")
@click.option("--timeout-first", type=_seconds, default=30.0, help="Seconds to the first event.")
@click.option("--timeout-gap", type=_seconds, default=30.0, help="Seconds between two events.")
@click.option(
    "--allow-fallback", is_flag=True, help="Score answers of another mode than the one asked for."
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, help="Put each question so many times."
)
@click.option("--json", metavar="FILE", help="Write the results there too; - is stdout.")
@click.option(
    "--resume",
    metavar="RUN",
    help="Go on from a run that was cut short, a run id or its folder; what it measured is kept.",
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
def command(**flags: object) -> None:
    """Start daemons, put a dataset to them, score the answers, hold the floor.

    \b
    Exit codes: 0 ok, 1 below the floor, 2 usage, 3 a daemon failed,
    4 nothing selected, 70 internal error, 130 interrupted.
    """
    options = _Options(**flags)  # type: ignore[arg-type] # click has checked every flag
    configure_logs(options.log_level)
    raise SystemExit(int(asyncio.run(_run(options))))


async def _run(options: _Options) -> ExitCode:
    # As Ctrl-C does: the run is cancelled, and its results are written.
    if (task := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    selected = _selected(options)
    runners = [find_runner(reference, Path.cwd()) for reference in options.sdk]
    plans = [_plan(options, selected, runner, n) for n, runner in enumerate(runners)]
    finished: list[RunFinished] = []
    for plan, runner in zip(plans, runners, strict=True):
        end = await _run_one(plan, runner, quiet=options.quiet)
        finished.append(end)
        # With --json - standard output is the report alone.
        click.echo(f"{banner(end.summary)} -> {end.copy}", err=options.json == "-")
        if end.summary.exit_code == ExitCode.INTERRUPTED:
            break
    code = gravest(ExitCode(end.summary.exit_code) for end in finished)
    if options.json is not None:
        with json_target(options.json) as target:
            write_report(target, [end.result for end in finished], code)
    return code


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
    dataset = open_dataset(options.dataset)
    selected = select(dataset, Selection(ids=ids, tags=options.tag, limit=options.limit))
    ExactScorer().refuse_unscorable(selected)
    return selected


def _plan(options: _Options, selected: Selected, runner: SdkRunner, index: int) -> Plan:
    mode = Mode(options.mode)
    _refuse_unclaimed(runner, mode, options)
    if options.seed_reference_brain or options.corpus:
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
        seeding=_seeding(options),
        build_hash=runner.build_hash(),
    )
    return Plan(
        settings=settings,
        selected=selected,
        output=options.output,
        floors=read_floors(options.floor),
        seeding="reference" if options.seed_reference_brain else options.corpus,
        port=options.port + index if options.port else 0,
        concurrency=options.concurrency,
        timeouts=Timeouts(
            total=options.timeout,
            connect=options.timeout_connect,
            first=options.timeout_first,
            gap=options.timeout_gap,
        ),
        headers=request_headers(options.header),
        command=tuple(sys.argv),
        resumed=_resumed(options, settings),
    )


def _seeding(options: _Options) -> str | None:
    if options.corpus is not None:
        return f"corpus:{corpus_digest(options.corpus)}"
    return "reference" if options.seed_reference_brain else None


def _resumed(options: _Options, settings: Settings) -> Path | None:
    """The journal to go on from.

    Raises:
        UsageError: where that run asked something else.
    """
    if options.resume is None:
        return None
    journal = find_journal(options.output, options.resume)
    if read_header(journal).settings_sha256 != settings.digest():
        raise UsageError(
            f"{journal.parent} was run with other settings",
            code="resume_mismatch",
            hint="its manifest.json shows them: dataset, selection, scenario, mode, k's, seeding,"
            " the daemon's build and the contract must be the same",
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
    if runner.modes is not None and mode not in runner.modes and not options.allow_fallback:
        raise UsageError(
            f"{runner.name} does not claim mode {mode.value}",
            code="mode_not_claimed",
            hint=f"it claims {', '.join(runner.modes)}; or use --allow-fallback",
        )


async def _run_one(plan: Plan, runner: SdkRunner, *, quiet: bool) -> RunFinished:
    with ConsoleReport(quiet=quiet) as report:
        async with aclosing(execute(plan, runner)) as events:
            async for event in events:
                report.handle(event)
                if isinstance(event, RunFinished):
                    return event
    raise RuntimeError("the run ended without its last event")
