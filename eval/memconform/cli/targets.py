"""Where `--json FILE` and its like write."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from memconform.printing.output import write_json_output, write_output
from memconform.storage.writing import Sink, device, replacing


def json_target(file: str) -> AbstractContextManager[Sink]:
    """Where `--json FILE` writes: `-` is standard output, a file appears whole or not at all."""
    return _target(file, write_json_output)


def text_target(file: str) -> AbstractContextManager[Sink]:
    """The same for text that is not JSON."""
    return _target(file, write_output)


@contextmanager
def _target(file: str, write: Callable[[str], None]) -> Iterator[Sink]:
    if file == "-":
        yield Sink(lambda data: write(data.decode()))
    elif Path(file).exists() and not Path(file).is_file():
        # A device or a pipe is written to; renaming a file over it would replace it.
        with device(Path(file)) as sink:
            yield sink
    else:
        with replacing(Path(file).resolve()) as sink:
            yield sink
