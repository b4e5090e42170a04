"""Entry point; a command's module is imported when it is called, so `--help` is fast."""

import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterable
from typing import ClassVar, NoReturn

import click

from memconform import __version__
from memconform.cli.commands import Option
from memconform.cli.former_names import FORMER_NAMES, find_former_name
from memconform.cli.lazy import LazyGroup, import_command
from memconform.cli.standard_streams import drop_output, prepare_streams, why_output_fails
from memconform.daemons.guard import adopt_orphans
from memconform.errors import ExitCode, MemconformError, limit_error
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.output import echo

# httpx imports its own command line with itself, and pygments for that: 3 % of the start of a run.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]

_TASKS = {
    "Compare SDKs": {
        "run": (
            "Start daemons, run a dataset against them, score the answers, enforce the pass-rate"
            " floor."
        ),
        "lme": "Replay LongMemEval: one shared brain, every SDK, one reader and one judge.",
        "parity": "Decide whether results agree, and show where they first differ.",
        "diff": "Show what changed between two results, or over dates and versions.",
    },
    "Check a daemon": {
        "init": "Describe a repository: write its sdk.toml, known-failures.yaml and a CI workflow.",
        "ci": (
            "Do all that a CI job does: doctor, conform, client, run, parity, and their reports."
        ),
        "doctor": ("Check this machine; with --sdk or --system, try that from build to stop."),
        "conform": "Check daemons against the contract, case by case.",
        "client": (
            "Check the clients of SDKs against the contract, with a daemon that a script plays."
        ),
        "fuzz": (
            "Send random requests to SDKs until their responses differ, or violate the contract."
        ),
        "mutate": (
            "Break a correct daemon, one thing at a time, and measure which defects the cases"
            " detect."
        ),
    },
    "Measure retrieval": {
        "bench": (
            "Measure how well and how fast daemons retrieve, on public benchmarks or a file of"
            " yours."
        ),
        "load": (
            "Send requests at a rate or from workers, and measure latency, errors and saturation."
        ),
        "wmb": "Run WMB-100K against a memory system, for `score --rubric wmb` to score.",
    },
    "Answer and judge": {
        "score": "Score stored answers, or answer what a bench retrieved, without a daemon.",
        "judge": "Measure judges: their errors, their agreement, and logs of their labels.",
    },
    "Use several machines": {
        "plan": "Show the shards of a command: what each of them has of the work.",
        "merge": "Join the results of all shards, as if one machine had done their work.",
    },
    "Look at results": {
        "report": "Show stored results as one HTML file, or in the formats of other programs.",
        "view": "Show results in a browser, and follow runs as they happen, until Ctrl-C.",
    },
    "Prepare": {
        "info": "Show the available SDKs, toolchains and datasets.",
        "datasets": "Lint, inspect, fetch and convert question sets and benchmarks.",
        "cache": "Show, prune and clear the replies of language models that are kept.",
        "upstream": "Serve scripted chat, embedding and reranking APIs for daemons to call.",
    },
}
"""Summaries of the commands by task, so that the help imports none of them."""


class _Verbs(LazyGroup):
    commands_by_name: ClassVar = {
        name: (f"{name}.command:command", summary)
        for verbs in _TASKS.values()
        for name, summary in verbs.items()
    }

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = find_former_name(args)
        if name is None:
            return super().resolve_command(ctx, args)
        former = FORMER_NAMES[name]
        if not ctx.resilient_parsing:
            echo(f"`memconform {name}` is now `{former.successor}`", err=True)
        command = import_command(former.reference)
        return name, command, [*former.arguments, *args[len(name.split()) :]]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        for task, verbs in _TASKS.items():
            with formatter.section(task):
                # The same width in each section, so that they read as one table.
                formatter.write_dl([(f"{name:<8}", text) for name, text in verbs.items()])


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=(
        "memconform run --sdk go --scorer exact",
        "memconform conform --sdk all",
        "memconform doctor --sdk path/to/sdk.toml",
    ),
    exit_codes={
        ExitCode.FAILED: "a verdict: the daemon or the comparison failed",
        ExitCode.DAEMON: "a daemon failed, so that there is no verdict",
        ExitCode.NOTHING_SELECTED: "nothing selected",
        ExitCode.INCONCLUSIVE: "inconclusive",
        ExitCode.BUDGET: "the budget for language models is spent",
    },
)
@click.version_option(__version__, prog_name="memconform", cls=Option)
def cli() -> None:
    """Test memory daemons written in different languages against one contract.

    Most people need three commands: `run` for whether SDKs answer right and agree, `conform` for
    what an SDK does wrong, and `doctor` for what keeps either from working here.
    """


def main(interrupts: Iterable[signal.Signals] = ()) -> None:
    """Run the program; only a measured verdict ends in exit code 1, whatever happens.

    Args:
        interrupts: signals that raise KeyboardInterrupt once something can be printed.
    """
    try:
        prepare_streams()
        for number in interrupts:
            signal.signal(number, signal.default_int_handler)
        _tolerate_warnings()
        # Python's TLS writes session keys to it, and fails as a missing file in each library's own
        # way.
        os.environ.pop("SSLKEYLOGFILE", None)
        # If a daemon kills its guard, the processes that the guard watched become ours to stop.
        adopt_orphans()
        code = cli(standalone_mode=False)
        sys.stdout.flush()
    except (SystemExit, BrokenPipeError):
        # Our commands return their code; click exits by itself if its output is closed. Finished
        # runs are in the results folder.
        drop_output()
        _end(
            "output_unwritable: standard output was closed before everything was printed\n"
            "  try: read it to its end; finished runs are in the results folder",
            ExitCode.INTERNAL,
        )
    except click.ClickException as error:
        _show_usage(error)
        raise SystemExit(int(ExitCode.USAGE)) from None
    except MemconformError as error:
        _end(render_error(error), error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        # click turns an EOFError into an abort, but it is a crash.
        if isinstance(error.__cause__, EOFError):
            _end_crashed()
        _end("interrupted", ExitCode.INTERRUPTED)
    # A panic of an extension in Rust is a BaseException.
    except BaseException as raised:  # noqa: BLE001 - no error may end in exit code 1
        cause = _first(raised)
        if isinstance(cause, MemconformError):
            _end(render_error(cause), cause.exit_code)
        if reason := why_output_fails(cause):
            drop_output()
            _end(
                f"output_unwritable: cannot write to standard output: {reason}\n"
                "  try: free disk space; finished runs are in the results folder",
                ExitCode.INTERNAL,
            )
        if limit := limit_error(cause):
            _end(render_error(limit), limit.exit_code)
        if isinstance(cause, OSError) and cause.filename is not None:
            _end(f"path_unusable: {cause.filename!r}: {cause.strerror}", ExitCode.USAGE)
        _end_crashed()
    raise SystemExit(int(code or ExitCode.OK))


def _first(error: BaseException) -> BaseException:
    """The first error of a group, which tasks raised together."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _tolerate_warnings() -> None:
    """Show warnings that PYTHONWARNINGS=error makes errors: a library's warning ends no run."""
    if any(action == "error" for action, *_ in warnings.filters):
        warnings.simplefilter("default")


def _show_usage(error: click.ClickException) -> None:
    """Print click's own message, escaped because it quotes arguments."""
    message = io.StringIO()
    error.show(message)
    echo(Lines(message.getvalue().removesuffix("\n")), err=True)


def _end_crashed() -> NoReturn:
    _end(
        f"{traceback.format_exc()}internal_error: this is a bug in memconform, not in a"
        " daemon\n  try: report it with the lines above",
        ExitCode.INTERNAL,
    )


def _end(message: str, code: ExitCode) -> NoReturn:
    echo(Lines(message), err=True)
    raise SystemExit(int(code)) from None


if __name__ == "__main__":
    main()
