"""Paths: their form, what is hidden, and what conflicts. Pure."""

from collections.abc import Iterable, Iterator


def is_canonical(path: str) -> bool:
    """Whether it is a path (core.ingest.path)."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return False
    segments = path.split("/")
    return (
        1 <= length <= 2048
        and not {"\\", "\0"}.intersection(path)
        and all(1 <= len(s.encode()) <= 250 and s not in (".", "..") for s in segments)
    )


def base_name(path: str) -> str:
    """The part after the last slash."""
    return path.rpartition("/")[2]


def is_hidden(path: str) -> bool:
    """Whether the base name starts with `_`."""
    return base_name(path).startswith("_")


def folders(path: str) -> Iterator[str]:
    """The folders above a path, innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def conflicts(path: str, others: Iterable[str]) -> bool:
    """Whether a document at `path` cannot be beside one of `others` (core.ingest.conflict).

    A document `a` has the sidecar `a.json`, so neither `a` nor `a.json` can be a folder.
    """
    above = set(folders(path))
    for other in others:
        beyond = set(folders(other))
        if {path, f"{path}.json"} & beyond or {other, f"{other}.json"} & above:
            return True
    return False
