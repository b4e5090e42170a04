"""What `memconform ci` does: commands one after another, each in a process of its own.

A crash of one is one bad step, and whoever reads the log can repeat each as it stands there.
"""

import json
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memconform.cli.ci.command import STEPS, CiOptions
from memconform.cli.ci.release import checked_out
from memconform.cli.ci.summary import StepOutcome, render_summary
from memconform.cli.lazy import require_extra
from memconform.daemons.client_program import ClientProgram, find_client
from memconform.daemons.discovery import working_folder
from memconform.daemons.process import PROGRAM
from memconform.errors import ExitCode, MemconformError, UsageError, gravest
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.output import echo
from memconform.storage.sink import replacing

_REPORTS = {
    "markdown": "results.md",
    "annotations": "annotations.txt",
    "badge": "badge.json",
    "junit": "junit.xml",
}
"""File by format; report.html needs an extra."""
_RESULTS = ("reference.json", "run.json", "conform.json", "client.json", "parity.json")


def ci(options: CiOptions) -> ExitCode:
    """Do every step and write the reports; returns the gravest exit code.

    Raises:
        ResultsError: `results_unwritable` if the summary cannot be written.
    """
    job = _Job(options)
    job.remove_earlier()
    job.test()
    job.report()
    code = gravest(outcome.exit_code for outcome in job.outcomes)
    verdict = "ok" if code is ExitCode.OK else f"exit code {int(code)}"
    echo(f"ci: {verdict} -> {job.file('summary.md')}")
    return code


def _client(reference: str) -> ClientProgram | None:
    """The SDK's client, if it has one that can be read; doctor says what is wrong with it."""
    try:
        return find_client(reference, working_folder())
    except UsageError:
        return None


class _Job:
    """The steps of one call, and the files that they write."""

    def __init__(self, options: CiOptions) -> None:
        self._options = options
        self.outcomes: list[StepOutcome] = []
        self._notes: list[str] = []

    def file(self, name: str) -> str:
        """The path of a file of the job."""
        return str(self._options.output / name)

    def remove_earlier(self) -> None:
        """Remove the files of an earlier call, which would be reported as results of this one."""
        for name in (*_RESULTS, *_REPORTS.values(), "report.html", "summary.md"):
            (self._options.output / name).unlink(missing_ok=True)
        self._options.output.mkdir(parents=True, exist_ok=True)

    def test(self) -> None:
        """Do the steps that are asked for."""
        options = self._options
        client = _client(options.sdk)
        wants = set(options.step or STEPS)
        if client is None and not options.step:
            wants.discard("client")
        if client is not None and not client.has_daemon:
            wants &= {"doctor", "client"}
        sdk, upstream = f"--sdk={options.sdk}", f"--upstream={options.upstream}"
        if "doctor" in wants:
            self._do("doctor", "doctor", sdk, upstream)
            if self.outcomes[-1].exit_code is ExitCode.USAGE:
                self._notes.append("doctor could not read the SDK, so nothing else was tried")
                return
        if "conform" in wants:
            profiles = [f"--profile={profile}" for profile in options.profile]
            self._do("conform", "conform", sdk, *profiles, *self._results("conform.json"))
        if "client" in wants:
            self._do("client", "client", sdk, *self._results("client.json"))
        compares = "parity" in wants and bool(options.against or options.against_ref)
        if compares:
            # First, because reports show the last run of a name, and a release has the same name.
            self._ask_reference()
        if "run" in wants or compares:
            floor = [] if options.floor is None else [f"--floor={options.floor}"]
            self._do("run", "run", sdk, *self._questions(), *floor, *self._results("run.json"))
        if compares:
            self._compare()

    def _ask_reference(self) -> None:
        """Ask the other SDK the same questions; parity decides, so that it needs no floor."""
        with self._reference() as reference:
            if reference is not None:
                self._do(
                    *("reference", "run", f"--sdk={reference}", *self._questions(), "--floor=0"),
                    *self._results("reference.json"),
                )

    def _compare(self) -> None:
        results = [self._stored("reference.json"), self._stored("run.json")]
        named = [str(result) for result in results if result is not None]
        if len(named) == len(results):
            self._do("parity", "parity", *named, f"--json={self.file('parity.json')}")
        else:
            self._notes.append("parity was not tried: one of the two results is missing")

    def _stored(self, name: str) -> Path | None:
        """The stored result of the only run of a report; None if there is none."""
        try:
            report = json.loads(Path(self.file(name)).read_text(encoding="utf-8"))
            [run] = report["runs"]
            stored = self._options.output / "runs" / run["run_id"] / "result.json"
        except (OSError, ValueError, LookupError):
            return None
        return stored if stored.is_file() else None

    @contextmanager
    def _reference(self) -> Iterator[str | None]:
        """The SDK to compare with; None, and a step that failed, if there is no such release."""
        options = self._options
        with ExitStack() as stack:
            reference = options.against
            if options.against_ref is not None:
                try:
                    release = checked_out(options.sdk, options.against_ref)
                    reference = str(stack.enter_context(release))
                except UsageError as error:
                    self._fail("reference", f"--against-ref {options.against_ref}", error)
            yield reference

    def _questions(self) -> list[str]:
        options = self._options
        return [
            f"--data={options.data}",
            f"--scenario={options.scenario}",
            f"--mode={options.mode}",
            f"--upstream={options.upstream}",
            "--scorer=exact",
        ]

    def _results(self, name: str) -> list[str]:
        return [f"--json={self.file(name)}", f"--output={self._options.output}"]

    def _result(self, name: str) -> str | None:
        return self.file(name) if Path(self.file(name)).is_file() else None

    def report(self) -> None:
        """Write the reports of the results that there are, and the summary."""
        # The last release is the baseline; another SDK stands beside this one.
        is_release = self._options.against_ref is not None
        results = [file for name in _RESULTS if (file := self._result(name))]
        baseline = []
        if is_release and (earlier := self._result("reference.json")):
            results.remove(earlier)
            baseline = [f"--baseline={earlier}"]
        text = ""
        if results:
            tested = len(self.outcomes)
            for form, name in _REPORTS.items():
                self._report(form, name, results, baseline)
            if self._has_charts():
                self._report("html", "report.html", results, baseline)
            if written := self._result(_REPORTS["markdown"]):
                text = Path(written).read_text(encoding="utf-8")
                # It is a part of summary.md, and no report of its own.
                Path(written).unlink()
            # A report that was written says nothing that its step of the table would.
            reports = [each for each in self.outcomes[tested:] if each.exit_code is not ExitCode.OK]
            self.outcomes[tested:] = reports
        with replacing(self._options.output / "summary.md") as sink:
            sink.write_text(render_summary(self.outcomes, text, self._notes))

    def _report(self, form: str, name: str, results: Sequence[str], baseline: list[str]) -> None:
        target = f"--output-file={self.file(name)}"
        arguments = [*results, f"--format={form}", *baseline, target]
        self._do(f"report {form}", "report", *arguments, shown=False)

    def _has_charts(self) -> bool:
        try:
            require_extra("report")
        except UsageError as error:
            self._notes.append(f"report.html was not written: {error.message}; {error.hint}")
            return False
        return True

    def _do(self, name: str, verb: str, *arguments: str, shown: bool = True) -> None:
        """Carry out a command of the program and note how it ended, and what doctor printed."""
        quiet = (
            ["--quiet"]
            if self._options.quiet and verb in ("doctor", "run", "conform", "client")
            else []
        )
        command = [verb, *arguments, *quiet]
        line = f"memconform {shlex.join(command)}"
        if shown:
            echo(f"$ {line}")
        status, output = _call([*PROGRAM, *command], shown=shown)
        kept = output if verb == "doctor" else ""
        self.outcomes.append(StepOutcome(name, verb, line, _exit_code(status), kept))

    def _fail(self, name: str, command: str, error: MemconformError) -> None:
        """Note a step that could not be begun."""
        echo(render_error(error), err=True)
        self._notes.append(f"{error.code}: {error.message}")
        self.outcomes.append(StepOutcome(name, "run", command, error.exit_code))


def _call(command: Sequence[str], *, shown: bool) -> tuple[int, str]:
    """Carry out a command to its end, which an interrupt hastens.

    Returns its status and what it wrote to standard output, which is `shown` as it comes.
    """
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process:
        try:
            for line in process.stdout or ():
                lines.append(line)
                if shown:
                    echo(Lines(line.rstrip("\n")))
            return process.wait(), "".join(lines)
        except KeyboardInterrupt:
            # A terminal has sent it to both, and the command heeds the first alone.
            process.send_signal(signal.SIGINT)
            # Its output is read to the end, because it could not end with a full pipe.
            process.communicate()
            raise


def _exit_code(status: int) -> ExitCode:
    """The exit code of a process; one that died of a signal has failed of itself."""
    return ExitCode(status) if status in set(ExitCode) else ExitCode.INTERNAL
