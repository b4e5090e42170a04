"""Paths of documents: what one may be, and what it says of the document."""

from collections.abc import Iterator

from memoryd.problems import Problem, invalid

_SEGMENT_BYTES = 250
"""File systems allow 255 bytes a name; the sidecar adds `.json`."""

_PATH_BYTES = 2048
"""Half of what Linux allows, which leaves the other half to the state folder."""


def canonical(path: str, key: str = "path") -> str:
    """`path` itself, if it is a canonical relative POSIX path; else a validation_error on `key`."""
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        raise invalid(f"{key}: no valid Unicode") from None
    if not 1 <= length <= _PATH_BYTES:
        raise invalid(f"{key}: must have 1 to {_PATH_BYTES} bytes")
    if "\\" in path or "\0" in path:
        raise invalid(f"{key}: {path!r} holds a backslash or NUL")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise invalid(f"{key}: {path!r} is not a canonical relative path")
        if len(segment.encode()) > _SEGMENT_BYTES:
            raise invalid(f"{key}: a segment has more than {_SEGMENT_BYTES} bytes")
    return path


def is_canonical(path: str) -> bool:
    """Whether a request could name it; what somebody put on disk under another name is let be."""
    try:
        canonical(path)
    except Problem:
        return False
    return True


def base_name(path: str) -> str:
    return path.rpartition("/")[2]


def parent(path: str) -> str:
    """The folder that `path` lies in; empty for the brain itself."""
    return path.rpartition("/")[0]


def is_hidden(path: str) -> bool:
    """Whether the store hides it: documents named `_…` are never indexed."""
    return base_name(path).startswith("_")


def folders_of(path: str) -> Iterator[str]:
    """The folders that `path` lies in, outermost first."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
