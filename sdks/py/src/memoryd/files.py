"""Documents as files: paths, writing without half-written files, walking."""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from memoryd.problems import Problem, invalid

_SEGMENT_BYTES = 250
"""File systems allow 255 bytes a name; the sidecar adds `.json`."""

_STALE_SECONDS = 3600

_PATH_BYTES = 2048
"""Half of what Linux allows, which leaves the other half to the state folder."""


def canonical(path: str) -> str:
    """`path` itself, if it is a canonical relative POSIX path; else a validation_error."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        raise invalid("path: no valid Unicode") from None
    if not 1 <= length <= _PATH_BYTES:
        raise invalid(f"path: must have 1 to {_PATH_BYTES} bytes")
    if "\\" in path or "\0" in path:
        raise invalid(f"path: {path!r} holds a backslash or NUL")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise invalid(f"path: {path!r} is not a canonical relative path")
        if len(segment.encode()) > _SEGMENT_BYTES:
            raise invalid(f"path: a segment has more than {_SEGMENT_BYTES} bytes")
    return path


def is_canonical(path: str) -> bool:
    """Whether a request could name it; what somebody put on disk under another name is let be."""
    try:
        canonical(path)
    except Problem:
        return False
    return True


def is_hidden(path: str) -> bool:
    """Whether the store hides it: documents named `_…` are never indexed."""
    return PurePosixPath(path).name.startswith("_")


@contextmanager
def placed(staging: Path, contents: Iterable[tuple[Path, bytes]]) -> Iterator[None]:
    """Files with their contents: all of them from here on, or, if anything fails, none.

    What fails may be the writing, or whatever the caller does with the files inside the block;
    files that were there before are then back.
    """
    work = Path(tempfile.mkdtemp(dir=staging))
    done: list[tuple[Path, Path]] = []
    made: list[Path] = []
    try:
        staged = []
        for number, (target, content) in enumerate(contents):
            new = work / f"{number}.new"
            new.write_bytes(content)
            staged.append((new, target))
        for new, target in staged:
            old = new.with_suffix(".old")
            with suppress(FileNotFoundError):
                os.link(target, old)
            if (folder := _missing(target.parent)) is not None:
                made.append(folder)
                target.parent.mkdir(parents=True)
            done.append((old, target))
            new.replace(target)
        yield
    except BaseException:
        for old, target in reversed(done):
            if old.exists():
                old.replace(target)
            else:
                target.unlink(missing_ok=True)
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _missing(folder: Path) -> Path | None:
    """The topmost of the folders that `folder` lacks; None where it is there."""
    missing = None
    while not folder.exists():
        missing, folder = folder, folder.parent
    return missing


def sweep(staging: Path) -> None:
    """Remove what a daemon that was killed has left; a second daemon's work is younger."""
    for left in staging.iterdir():
        if time.time() - left.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


def walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every regular file below `root` as its relative path and status; links are not followed."""
    pending = [""]
    while pending:
        prefix = pending.pop()
        with os.scandir(root / prefix) as entries:
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path + "/")
                elif entry.is_file(follow_symlinks=False):
                    yield path, entry.stat(follow_symlinks=False)


def stamp(*states: os.stat_result | None) -> str:
    """What changes when one of the files changes; the inode tells two writes in one clock tick."""
    return json.dumps(
        [state and [state.st_size, state.st_mtime_ns, state.st_ino] for state in states]
    )


def status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is none."""
    try:
        loaded = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
