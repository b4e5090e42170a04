"""Operations of `disk` steps on the files of a daemon's state folder."""

import re
import shutil
import string
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from memconform.conformance.step_result import StepResult

Damage = Literal["noise", "zeros", "letters", "word", "cut"]

Pages = Literal["all", "later"]

_PAGE = 4096

_LOWER = string.ascii_lowercase.encode()
_SHIFTED = bytes.maketrans(_LOWER, _LOWER[1:] + _LOWER[:1])

_WORD = re.compile(rb"[a-z]{5,}")


def _change_word(page: bytes) -> bytes:
    """Change the word in the middle, and nothing around it."""
    words = list(_WORD.finditer(page))
    if not words:
        return page
    word = words[len(words) // 2]
    return page[: word.start()] + word[0].translate(_SHIFTED) + page[word.end() :]


_DAMAGES: dict[Damage, Callable[[bytes], bytes]] = {
    # At least a page, because an empty file has nothing to damage.
    "noise": lambda page: b"\xde\xad\xbe\xef" * (max(len(page), _PAGE) // 4),
    "zeros": lambda page: bytes(len(page)),
    "letters": lambda page: page.translate(_SHIFTED),
    "word": _change_word,
    "cut": lambda page: b"",  # noqa: ARG005 - the type of its neighbours
}


class NoSuchFileError(Exception):
    """No file in the state folder matches a glob."""


def read_file(state: Path, path: str) -> StepResult:
    """Read a file; the result has a failure and no body if it does not exist."""
    result = StepResult(f"disk: read {path}")
    try:
        result.body = (state / path).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        result.failure = f"{path}: {error.strerror}"
    return result


def list_files(state: Path, pattern: str, contract_path: Callable[[str], str] = str) -> StepResult:
    """List the files that match a glob, as sorted paths relative to the state folder.

    `contract_path` returns the path that the contract gives a file.
    """
    files = [str(p.relative_to(state)) for p in state.glob(pattern) if p.is_file()]
    paths = sorted(map(contract_path, files))
    return StepResult(f"disk: list {pattern}", value=paths)


def write_file(state: Path, path: str, content: bytes) -> StepResult:
    """Write a file, and create its parent folders if necessary."""
    target = state / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return StepResult(f"disk: write {path}", sent=content)


def remove_files(state: Path, pattern: str) -> StepResult:
    """Remove the files that match a glob.

    Raises:
        NoSuchFileError: if none does.
    """
    for path in _matching_files(state, pattern):
        path.unlink()
    return StepResult(f"disk: remove {pattern}")


def _page_numbers(page: float | Pages, last: int) -> range:
    match page:
        case "all":
            return range(last + 1)
        case "later":
            return range(min(1, last), last + 1)
        case _:
            return range(round(page * last), round(page * last) + 1)


def damage_files(
    state: Path, pattern: str, page: float | Pages = 0, kind: Damage = "noise"
) -> StepResult:
    """Damage a page of 4 KiB, or all of them, of each file that matches a glob.

    Args:
        state: the state folder.
        pattern: the glob, relative to it.
        page: from the first page of each file (0) to its last (1); `all`; or `later`, all but the
            first, which in a database describes the others.
        kind: `noise` and `zeros` replace the page, `letters` changes the lower-case letters in it,
            `word` one word of at least five of them, and `cut` ends the file before it.

    Raises:
        NoSuchFileError: if no file matches.
    """
    for path in _matching_files(state, pattern):
        content = path.read_bytes()
        last = max(0, (len(content) - 1) // _PAGE)
        numbers = _page_numbers(page, last)
        start, end = numbers.start * _PAGE, numbers.stop * _PAGE
        damaged = b"".join(_DAMAGES[kind](content[n * _PAGE : (n + 1) * _PAGE]) for n in numbers)
        rest = b"" if kind == "cut" else content[end:]
        path.write_bytes(content[:start] + damaged + rest)
    return StepResult(f"disk: damage {pattern}, page {page}: {kind}")


def create_link(state: Path, path: str, target: str) -> StepResult:
    """Create a symbolic link, and its parent folders if necessary."""
    source = state / path
    source.parent.mkdir(parents=True, exist_ok=True)
    source.symlink_to(target)
    return StepResult(f"disk: link {path} -> {target}")


def create_hard_link(state: Path, path: str, target: str) -> StepResult:
    """Give a file of the state folder another name, and create its parent folders if necessary.

    Raises:
        NoSuchFileError: if there is no such file.
    """
    if not (state / target).is_file():
        raise NoSuchFileError(f"no file {target} in the state folder")
    name = state / path
    name.parent.mkdir(parents=True, exist_ok=True)
    name.hardlink_to(state / target)
    return StepResult(f"disk: hard_link {path} -> {target}")


def remove_folder(state: Path, path: str) -> StepResult:
    """Remove a folder with all that is in it.

    Raises:
        NoSuchFileError: if there is no such folder.
    """
    if not (state / path).is_dir():
        raise NoSuchFileError(f"no folder {path} in the state folder")
    shutil.rmtree(state / path)
    return StepResult(f"disk: remove_folder {path}")


def _matching_files(state: Path, pattern: str) -> list[Path]:
    paths = [path for path in state.glob(pattern) if path.is_file()]
    if not paths:
        raise NoSuchFileError(f"no file matches {pattern} in the state folder")
    return paths
