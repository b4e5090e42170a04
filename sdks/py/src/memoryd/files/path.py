"""Document paths: relative, POSIX, canonical."""

from collections.abc import Iterator
from posixpath import basename

from memoryd.problem import Problem, invalid

_SEGMENT_BYTES = 250
"""File systems allow names of 255 bytes, and the sidecar adds `.json`."""

_PATH_BYTES = 2048
"""Half of what Linux allows, which leaves the other half to the state folder."""


def canonical(path: str, key: str = "path") -> str:
    """Return `path` if it is a canonical relative path.

    Raises:
        Problem: `validation_error` that names `key`, for any other path.
    """
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        raise invalid(f"{key}: is not valid Unicode") from None
    if not 1 <= length <= _PATH_BYTES:
        raise invalid(f"{key}: must have 1 to {_PATH_BYTES} bytes")
    if "\\" in path or "\0" in path:
        raise invalid(f"{key}: {path!r} contains a backslash or NUL")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise invalid(f"{key}: {path!r} is not a canonical relative path")
        if len(segment.encode()) > _SEGMENT_BYTES:
            raise invalid(f"{key}: a segment has more than {_SEGMENT_BYTES} bytes")
    return path


def is_canonical(path: str) -> bool:
    """Whether a request could name the file; files with other names on disk are ignored."""
    try:
        canonical(path)
    except Problem:
        return False
    return True


def is_hidden(path: str) -> bool:
    """Whether the base name starts with `_`: such documents are stored but never indexed."""
    return basename(path).startswith("_")


def folders_of(path: str) -> Iterator[str]:
    """The folders above `path`, outermost first."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
