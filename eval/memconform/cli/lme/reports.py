"""What `memconform lme run` and `lme tri` print and write when a replay has ended."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from memconform.cli.html_report import REPORT, write_html_report
from memconform.cli.lme.options import LmeOptions
from memconform.cli.output_files import json_target
from memconform.daemons.availability import SkippedSdk
from memconform.errors import DaemonError, ExitCode, MemconformError, UsageError, gravest
from memconform.llm.chat import ModelUnusableError
from memconform.printing.commands import resume_folder_command
from memconform.printing.output import echo
from memconform.replay.events import ReplayFinished
from memconform.replay.manifest import command_line
from memconform.replay.records import LmeReport, LmeResult
from memconform.reports.lme import lme_lines, show_lme


@contextmanager
def continuation_hint(folder: Path) -> Iterator[None]:
    """Print the command that continues a replay which an error ended before it had results.

    A usage error, or an SDK that cannot be built, would end the same command again; a model service
    that is down may answer later.
    """
    try:
        yield
    except (KeyboardInterrupt, MemconformError) as error:
        if not isinstance(error, UsageError | DaemonError | ModelUnusableError):
            _print_continuation(folder)
        raise


def report_replay(
    options: LmeOptions, finished: ReplayFinished, skipped: Sequence[SkippedSdk]
) -> ExitCode:
    """Print the results, write the files of --json and --html, and return the exit code."""
    code = gravest([ExitCode(finished.exit_code), *(sdk.exit_code for sdk in skipped)])
    show_lme(finished, quiet=options.quiet)
    if finished.exit_code == ExitCode.INTERRUPTED or any(map(_is_open, finished.results)):
        _print_continuation(finished.folder)
    if options.json_file is not None:
        report = LmeReport(
            exit_code=code,
            skipped=[sdk.record() for sdk in skipped],
            results=list(finished.results),
            parity=finished.parity,
        )
        with json_target(options.json_file) as target:
            target.write_json(report)
    if options.html:
        results = [finished.folder / f"result-{result.sdk}.json" for result in finished.results]
        write_html_report(results, finished.folder / REPORT, quiet=options.quiet)
    for line in lme_lines(finished):
        echo(line)
    echo(f"-> {finished.folder}")
    return code


def _is_open(result: LmeResult) -> bool:
    """Whether the same command would ask, read or judge again what was not measured."""
    is_refused = result.incident is not None and result.incident.exit_code == ExitCode.USAGE
    return result.measured < result.questions_run and not is_refused


def _print_continuation(folder: Path) -> None:
    echo(f"to continue: {resume_folder_command(command_line(), folder)}", err=True)
