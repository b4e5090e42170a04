"""`memconform fuzz`."""

import asyncio
import secrets
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from memconform.cli.options import (
    cancel_on_signals,
    configure_logs,
    json_file,
    json_target,
    log_level,
    run_to_end,
    schema,
    sdks,
)
from memconform.cli.planning import built
from memconform.contract.wire import CONTRACT_VERSION
from memconform.daemons.availability import Absence
from memconform.errors import DaemonError, ExitCode, UsageError, gravest
from memconform.fuzzing.results import FoundDisagreement, FuzzReport
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.reports.fuzzing import FuzzConsole, fuzz_banner, show_disagreement
from memconform.storage.provenance import Origin
from memconform.storage.writing import replacing

if TYPE_CHECKING:
    from memconform.fuzzing.session import Disagreement


@dataclass(frozen=True, slots=True)
class FuzzOptions:
    """The command line, typed; names are those of the flags."""

    sdk: tuple[str, ...]
    no_skip: bool
    examples: int
    seed: int | None
    into: Path
    json_file: str | None
    log_level: str


@click.command("fuzz", context_settings={"show_default": True})
@sdks(required=True)
@click.option(
    "--examples", type=click.IntRange(min=1), default=2_000, help="Programs to put to all daemons."
)
@click.option("--seed", type=click.IntRange(min=0), help="The same programs again; any by default.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default="results/fuzz",
    metavar="DIR",
    help="Where the case of a disagreement is written.",
)
@json_file
@schema(FuzzReport)
@log_level
def command(**flags: object) -> ExitCode:
    """Put the same requests, valid and nearly so, to several daemons until they part.

    What they part about is made as small as it will get, and written as a case.

    \b
    Exit codes: 0 they agree, 1 they part, 2 usage, 3 a daemon did not start or could not be asked
    any more, 70 internal error, 130 interrupted.
    """
    options = FuzzOptions(**flags)  # type: ignore[arg-type] # click has checked every flag
    configure_logs(options.log_level)
    return run_to_end(_fuzz(options))


async def _fuzz(options: FuzzOptions) -> ExitCode:
    cancel_on_signals()
    try:
        from memconform.fuzzing import session  # noqa: PLC0415 - Hypothesis is an extra
        from memconform.fuzzing.asking import BrainLostError  # noqa: PLC0415 - same
    except ImportError as error:
        raise UsageError(
            f"fuzz wants {error.name}", code="extra_missing", hint="pip install 'memconform[fuzz]'"
        ) from error
    present, absences = await built(options.sdk, no_skip=options.no_skip)
    runners = [runner for runner, _ in present]
    if len(runners) < 2:
        raise UsageError(
            "fuzz compares daemons with one another",
            code="one_sdk",
            hint="give --sdk twice, or all",
        )
    started, clock = datetime.now(UTC), time.perf_counter()
    seed = options.seed if options.seed is not None else secrets.randbelow(2**32)
    profiles = set.intersection(*(set(runner.profiles) for runner in runners))
    stop = threading.Event()
    with (
        tempfile.TemporaryDirectory(prefix="memconform-", ignore_cleanup_errors=True) as folder,
        FuzzConsole(options.examples) as console,
    ):
        async with session.serving(runners, Path(folder)) as addresses:
            seeking = asyncio.create_task(
                asyncio.to_thread(
                    session.seek,
                    addresses,
                    profiles,
                    examples=options.examples,
                    seed_value=seed,
                    tried=console.tried,
                    stop=stop,
                )
            )
            try:
                sought = await asyncio.shield(seeking)
            except BrainLostError as error:
                raise DaemonError(
                    str(error),
                    code="daemon_lost",
                    hint=f"memconform doctor says whether it is well; --seed {seed} asks the same",
                ) from error
            finally:
                stop.set()
                await asyncio.gather(seeking, return_exceptions=True)
    found = sought.disagreement
    written = await asyncio.to_thread(_written, options.into, found) if found is not None else None
    code = ExitCode.FAILED if found is not None else ExitCode.OK
    code = gravest([code, *(absence.exit_code for absence in absences)])
    report = FuzzReport(
        sdks=[runner.name for runner in runners],
        started_at=started,
        **dict(Origin.of(sys.argv)),
        contract=CONTRACT_VERSION,
        seed=seed,
        examples=sought.examples,
        requests=sought.requests,
        took_s=round(time.perf_counter() - clock, 3),
        disagreement=written,
        exit_code=int(code),
    )
    _tell(options, report, absences)
    return code


def _written(into: Path, found: "Disagreement") -> FoundDisagreement:
    from memconform.fuzzing.writing import case_file  # noqa: PLC0415 - Hypothesis is an extra

    case, text = case_file(found)
    into.mkdir(parents=True, exist_ok=True)
    file = into / f"{case}.yaml"
    with replacing(file) as target:
        target.write_text(text)
    return FoundDisagreement(
        file=str(file),
        case=case,
        pointer=found.difference.pointer,
        values=found.difference.values,
        requests=len(found.program.calls),
        steady=found.steady,
    )


def _tell(
    options: FuzzOptions,
    report: FuzzReport,
    absences: Sequence[Absence],
) -> None:
    if options.json_file is not None:
        with json_target(options.json_file) as target:
            target.write_json(report)
    for absence in absences:
        echo(Lines(f"{absence.sdk} skipped: {absence.error.render()}"), err=True)
    if report.disagreement is not None:
        show_disagreement(report, options.sdk)
    echo(fuzz_banner(report), err=options.json_file == "-")
