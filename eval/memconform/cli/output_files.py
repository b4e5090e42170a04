"""Targets of `--json FILE` and similar options."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from memconform.printing.output import write_commands, write_json_output, write_output
from memconform.records import Record
from memconform.storage.sink import Sink, device, replacing


def json_target(file: str) -> AbstractContextManager[Sink]:
    """Open the target of `--json FILE`: `-` is standard output; a file is replaced atomically."""
    return _target(file, write_json_output)


def text_target(file: str) -> AbstractContextManager[Sink]:
    """Open the target of an option that writes text other than JSON."""
    return _target(file, write_output)


def write_report(
    report: Record, render: Callable[[], str], json_file: str | None, markdown: str | None
) -> None:
    """Write a report to the targets of `--json` and `--markdown`, if they were given.

    Args:
        report: what `--json` writes.
        render: renders it as Markdown.
        json_file: the target of `--json`.
        markdown: the target of `--markdown`.

    Raises:
        ResultsError: if it cannot be written (`results_unwritable`).
    """
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json(report)
    if markdown is not None:
        with text_target(markdown) as target:
            target.write_text(render())


def inert_target(file: str) -> AbstractContextManager[Sink]:
    """Open the target of text whose parts are masked and escaped already.

    A standard output for people would disarm CI commands, and mask parts of HTML and XML syntax.
    """
    return _target(file, write_commands)


@contextmanager
def _target(file: str, write: Callable[[str], None]) -> Iterator[Sink]:
    if file == "-":
        yield Sink(lambda data: write(data.decode()))
    elif Path(file).exists() and not Path(file).is_file():
        # A device or a pipe is written in place, because a rename would replace it.
        with device(Path(file)) as sink:
            yield sink
    else:
        with replacing(Path(file).resolve()) as sink:
            yield sink
