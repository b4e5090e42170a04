"""Targets of `--json FILE` and similar options."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from memconform.printing.output import write_commands, write_json_output, write_output
from memconform.storage.sink import Sink, device, replacing


def json_target(file: str) -> AbstractContextManager[Sink]:
    """Open the target of `--json FILE`: `-` is standard output; a file is replaced atomically."""
    return _target(file, write_json_output)


def text_target(file: str) -> AbstractContextManager[Sink]:
    """Open the target of an option that writes text other than JSON."""
    return _target(file, write_output)


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
