"""`memconform run`."""

import asyncio
from pathlib import Path

import click

from memconform.cli.events import dispatch
from memconform.cli.options import (
    SECONDS,
    cancel_on_signals,
    configure_logs,
    env,
    floors,
    json_file,
    json_target,
    log_level,
    output,
    schema,
    sdks,
    upstream,
)
from memconform.cli.planning import EXISTING_BRAIN, RunOptions, chosen
from memconform.contract.wire import Mode
from memconform.daemons.runner import SdkRunner
from memconform.errors import ExitCode, gravest
from memconform.parity.agreement import Agreement, compare
from memconform.parity.records import ParityReport, Verdict
from memconform.parity.sides import Side
from memconform.printing.output import echo
from memconform.reports.console import ConsoleReport
from memconform.reports.machine import RunReport, agreement_banner, banner, write_report
from memconform.reports.matrix import show_matrix
from memconform.reports.parity import parity_banner, show_parity
from memconform.runs.engine import execute
from memconform.runs.events import RunFinished
from memconform.runs.plan import Plan
from memconform.scenarios import SCENARIOS

_OWN = "0: the daemon's own."


@click.command("run", context_settings={"show_default": True})
@sdks(required=True)
@click.option(
    "--require-agreement",
    is_flag=True,
    help="Fail where several SDKs were measured and do not rank and answer alike; without it that"
    " is shown, and decides nothing.",
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
@click.option(
    "--brain",
    help="The brain to ask. Without it a run that seeds makes a brain of its own,"
    f" and any other asks {EXISTING_BRAIN!r}.",
)
@click.option(
    "--i-own-this-brain",
    is_flag=True,
    help="Let seeding empty any brain of a url: daemon, not only mc-….",
)
@click.option("--top-k", type=click.IntRange(1, 1000), default=5)
@click.option(
    "--candidate-k", type=click.IntRange(0, 10_000), default=0, help="0: the daemon's own."
)
@click.option(
    "--rerank-top-n", type=click.IntRange(0, 1_000), default=0, help="0: the daemon's own."
)
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
@env
@click.option("--concurrency", type=click.IntRange(1, 256), default=1, help="Questions in flight.")
@click.option("--timeout", type=SECONDS, default=120.0, help="Seconds for a whole question.")
@click.option("--timeout-connect", type=SECONDS, default=5.0, help="Seconds to connect.")
@click.option("--timeout-first", type=SECONDS, default=30.0, help="Seconds to the first event.")
@click.option("--timeout-gap", type=SECONDS, default=30.0, help="Seconds between two events.")
@click.option(
    "--allow-fallback", is_flag=True, help="Score answers of another mode than the one asked for."
)
@click.option(
    "--reproof/--no-reproof",
    default=True,
    help="Prove the index again while it is asked and at the end, and repeat retrievals that lack"
    " what was expected. Without it only counts are compared, which the result states.",
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
    Exit codes: 0 ok, 1 below the floor, drift or no agreement, 2 usage, 3 a daemon failed,
    4 nothing selected, 5 nothing to agree with, 70 internal error, 130 interrupted.
    """
    options = RunOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    configure_logs(options.log_level)
    return asyncio.run(_run(options))


async def _run(options: RunOptions) -> ExitCode:
    cancel_on_signals()
    choice = await chosen(options, lambda line: echo(f"  {line}", err=True))
    finished: list[RunFinished] = []
    agreement: Agreement | None = None
    parity: ParityReport | None = None
    # With --json - standard output is the report alone.
    to_stderr = options.json_file == "-"
    try:
        for plan, runner in choice.runs:
            brief = len(choice.runs) > 1
            end = await _run_one(plan, runner, quiet=options.quiet, brief=brief)
            finished.append(end)
            echo(f"{banner(end.summary)} -> {end.copy}", err=to_stderr)
            if end.summary.exit_code == ExitCode.INTERRUPTED:
                break
        if len(finished) > 1:
            agreement = await asyncio.to_thread(
                compare,
                [(end.summary.sdk, end.result) for end in finished],
                answers=SCENARIOS[options.scenario].text_kind == "answer",
                incidents={end.summary.sdk: end.summary.incident for end in finished},
            )
            echo(agreement_banner(agreement), err=to_stderr)
            sides = [Side(end.summary.sdk, end.result, end.summary) for end in finished]
            parity = await asyncio.to_thread(_parity_of, sides)
            echo(parity_banner(parity), err=to_stderr)
        if options.quiet:
            show_matrix([], choice.absences, None)
        else:
            show_matrix([end.summary for end in finished], choice.absences, agreement)
            if parity is not None:
                show_parity(parity, brief=True)
    finally:
        # Whatever stops a later run, the report holds those that ended before it.
        codes = [ExitCode(end.summary.exit_code) for end in finished]
        codes += [absence.exit_code for absence in choice.absences]
        if parity is not None and parity.verdict is Verdict.DRIFT:
            codes.append(ExitCode.FAILED)
        if options.require_agreement:
            codes.append(agreement.exit_code if agreement else ExitCode.INCONCLUSIVE)
        code = gravest(codes)
        if options.json_file is not None and finished:
            with json_target(options.json_file) as target:
                write_report(
                    target,
                    [end.result for end in finished],
                    code,
                    absences=choice.absences,
                    agreement=agreement,
                    parity=parity,
                )
    return code


def _parity_of(sides: list[Side]) -> ParityReport:
    from memconform.parity import comparison  # noqa: PLC0415 - numpy, a quarter of `run`

    return comparison.compare(sides)


async def _run_one(plan: Plan, runner: SdkRunner, *, quiet: bool, brief: bool) -> RunFinished:
    with ConsoleReport(quiet=quiet, brief=brief) as report:
        last = await dispatch(execute(plan, runner), [report.handle])
    if not isinstance(last, RunFinished):
        raise RuntimeError("the run ended without its last event")  # noqa: TRY004
    return last
