"""The entry point; a verb's module is imported when the verb is called, so `--help` is quick."""

import io
import sys
import traceback
from concurrent.futures import CancelledError
from typing import ClassVar, NoReturn

import click

from memconform import __version__
from memconform.cli.lazy import LazyGroup
from memconform.cli.streams import drop_output, prepare_streams, why_output_fails
from memconform.daemons.guard import adopt_orphans
from memconform.errors import ExitCode, MemconformError
from memconform.printing.escaping import Lines
from memconform.printing.output import echo

_VERBS = {
    "bench": "Measure retrieval on LoCoMo, LongMemEval, WMB-100K, or a file of yours.",
    "conform": "Hold daemons to the contract, case by case; list, explain, replay, lint.",
    "datasets": "Question sets and benchmarks: lint, info, fetch, convert, compile-history.",
    "diff": "What changed from one run to another: regressions, fixes, latency.",
    "doctor": "Try an SDK step by step: build, start, ingest, search, ask, stop.",
    "fuzz": "Put the same random requests to several SDKs until they part.",
    "info": "Show the SDKs that are found, their toolchains, profiles and modes.",
    "mutate": "Break a good daemon, one thing at a time: does conform find it?",
    "parity": "Prove or refute that runs agree, and show where they part.",
    "report": "Make documents of results: tables.",
    "rescore": "Score the stored answers of a run anew, without a daemon.",
    "run": "Start daemons, put a dataset to them, score the answers, hold the floor.",
    "trend": "How runs came out over dates and versions.",
    "upstream": "Serve chat, embeddings and reranking by script, for daemons to call.",
}


class _Verbs(LazyGroup):
    commands_by_name: ClassVar = {name: (f"{name}:command", told) for name, told in _VERBS.items()}


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="memconform")
def cli() -> None:
    """Hold memory daemons written in different languages to one contract."""


def main() -> None:
    """Run the program; whatever happens, only a measured verdict ends in 1."""
    prepare_streams()
    # A guard that its daemon kills leaves us what it should have ended.
    adopt_orphans()
    try:
        code = cli(standalone_mode=False)
        sys.stdout.flush()
    except (SystemExit, BrokenPipeError):
        # Our commands return their code; it is click that exits, where its output is closed. What
        # was run is in the results folder.
        drop_output()
        raise SystemExit(int(ExitCode.INTERNAL)) from None
    except click.ClickException as error:
        _show_usage(error)
        raise SystemExit(int(ExitCode.USAGE)) from None
    except MemconformError as error:
        _end(error.render(), error.exit_code)
    except (click.Abort, KeyboardInterrupt, CancelledError) as error:
        # click makes an EOFError an abort too, and that is none.
        if isinstance(error.__cause__, EOFError):
            _end_crashed()
        _end("interrupted", ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not end in 1
        if why := why_output_fails(error):
            drop_output()
            _end(
                f"output_unwritable: standard output takes no more: {why}\n"
                "  try: make room; what was run is in the results folder",
                ExitCode.INTERNAL,
            )
        if isinstance(error, OSError) and error.filename is not None:
            _end(f"path_unusable: {error.filename!r}: {error.strerror}", ExitCode.USAGE)
        _end_crashed()
    raise SystemExit(int(code or ExitCode.OK))


def _show_usage(error: click.ClickException) -> None:
    """click's own message; it quotes arguments, which may be names of files."""
    message = io.StringIO()
    error.show(message)
    echo(Lines(message.getvalue().removesuffix("\n")), err=True)


def _end_crashed() -> NoReturn:
    _end(
        f"{traceback.format_exc()}internal_error: this is a fault of memconform, not of a"
        " daemon\n  try: report it with the lines above",
        ExitCode.INTERNAL,
    )


def _end(message: str, code: ExitCode) -> NoReturn:
    echo(Lines(message), err=True)
    raise SystemExit(int(code)) from None


if __name__ == "__main__":
    main()
