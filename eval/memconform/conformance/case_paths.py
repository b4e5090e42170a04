"""Writes the paths of cases on the wire of a daemon whose dialect prefixes or suffixes them. Pure.

A case names what it tests: `a/b` below the document `a`, a path that ends in `/`, one that leads
out of the brain. With a suffix at the end alone, `a.md` and `a/b.md` are no conflict, and `a/.md`
does not end in `/`: over a hundred checks of each of three daemons failed for that reason. Here
each segment has the suffix, so that the relations between paths remain; a measurement, which only
needs documents, keeps the shorter form of `PathMapping`.
"""

import re
from collections.abc import Iterable
from itertools import pairwise
from urllib.parse import quote, unquote, unquote_to_bytes

from memconform.contract.dialect_keys import DialectError
from memconform.contract.dialect_tables import PathMapping

MAX_PATH = 2_048
"""Longest path, in bytes of UTF-8 (core.ingest.path)."""
MAX_SEGMENT = 250
"""Longest segment of a path, in bytes of UTF-8 (core.ingest.path)."""

_SEPARATOR = re.compile("(/|%2[fF])")
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_SPECIAL = ("", ".", "..")


class CasePaths(PathMapping):
    """The prefix, then each segment with the suffix: `a/b` becomes `prefix/a.md/b.md`.

    A segment that is empty, `.` or `..` has no suffix. A path that leads out of the brain, or is
    absolute, has no prefix either: behind one, it would do neither.
    """

    def to_daemon(self, path: str) -> str:
        """Return the daemon's path of a document or folder.

        Raises:
            DialectError: `not_in_dialect` if the path would no longer be valid, or hidden.
        """
        return self._written(path, path, is_encoded=False)

    def _written(self, path: str, meaning: str, *, is_encoded: bool) -> str:
        """Write a path, which may be percent-encoded and then means `meaning`."""
        if not path or _escapes(meaning) or not (self.prefix or self.suffix):
            return path
        prefix, suffix = self.prefix, self.suffix
        pieces = path.split("/")
        if is_encoded:
            prefix, suffix = quote(prefix), quote(suffix)
            pieces = _SEPARATOR.split(path)
        is_bare = _is_bare if is_encoded else _SPECIAL.__contains__
        joint = "" if is_encoded else "/"
        written = prefix + joint.join(p if is_bare(p) else f"{p}{suffix}" for p in pieces)
        first = meaning.partition("/")[0]
        if self.prefix[-1:] not in ("", "/") and (first in _SPECIAL or first.startswith("_")):
            raise self._no_form(meaning, "the prefix is part of its first segment")
        if self.suffix and ".json/" in meaning:
            raise self._no_form(meaning, "a document's sidecar is named by its whole path")
        if _is_short(meaning) and not _is_short(unquote(written) if is_encoded else written):
            raise self._no_form(meaning, "it would be longer than the contract allows")
        return written

    def _no_form(self, path: str, why: str) -> DialectError:
        shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
        return DialectError(
            "not_in_dialect", f"the dialect's paths cannot say what {shown!r} tests: {why}"
        )

    def in_query(self, value: str) -> str:
        """Return the percent-encoded path of a query; one without a meaning has the prefix only."""
        decoded = _decoded(value)
        if decoded is None:
            return f"{quote(self.prefix)}{value}"
        return self._written(value, decoded, is_encoded=True)

    def folder_in_query(self, value: str) -> str:
        """Return the percent-encoded folder of a query; empty means the brain itself."""
        return self.in_query(value) if value else quote(self.folder_to_daemon(""))

    def glob_in_query(self, value: str) -> str:
        """Return the percent-encoded glob of base names, which has the suffix as they have it.

        Raises:
            DialectError: `not_in_dialect` if base names have a part of the prefix, too.
        """
        if self.prefix[-1:] not in ("", "/"):
            raise self._no_form(value, "the prefix is part of base names")
        return f"{value}{quote(self.suffix)}" if value and _decoded(value) is not None else value

    def folder_to_daemon(self, folder: str) -> str:
        """Return the daemon's path of a folder; empty means the brain itself."""
        return self.to_daemon(folder) if folder else super().folder_to_daemon("")

    def prefix_to_daemon(self, path_prefix: str) -> str:
        """Return the beginning of the daemon's paths: its last segment may be incomplete."""
        folders, slash, rest = path_prefix.rpartition("/")
        segments = [s if s in _SPECIAL else f"{s}{self.suffix}" for s in folders.split("/")]
        return f"{self.prefix}{'/'.join(segments)}{slash}{rest}"

    def from_daemon(self, path: str) -> str:
        """Return the path of a case; a path that is not of this form is returned unchanged."""
        if not path.startswith(self.prefix):
            return path
        segments = path.removeprefix(self.prefix).split("/")
        if not all(s in _SPECIAL or s.endswith(self.suffix) for s in segments):
            return path
        return "/".join(s if s in _SPECIAL else s.removesuffix(self.suffix) for s in segments)

    def folder_from_daemon(self, folder: str) -> str:
        """Return a folder's path, which has the same form as a document's."""
        return "" if folder == self.folder_to_daemon("") else self.from_daemon(folder)

    def on_disk(self, path: str) -> str:
        """Return a path or glob of the state folder, `brains/<id>/…`, as the daemon has it.

        Raises:
            DialectError: `not_in_dialect` if the file itself holds paths of documents.
        """
        room, _, rest = path.partition("/")
        if room in ("meta", "staging") and (self.prefix or self.suffix):
            raise DialectError(
                "not_in_dialect",
                f"the files of {room}/ hold paths of documents, which the dialect's paths change",
            )
        brain, _, inner = rest.partition("/")
        if room != "brains" or not inner or "**" in inner:
            return path
        return f"{room}/{brain}/{self.to_daemon(inner)}"

    def from_disk(self, path: str) -> str:
        """Return the contract's path of a file of the state folder."""
        room, _, rest = path.partition("/")
        brain, _, inner = rest.partition("/")
        return f"{room}/{brain}/{self.from_daemon(inner)}" if room == "brains" and inner else path


_SHOWN = 60


def _is_bare(piece: str) -> bool:
    """Whether a part of an encoded path is a separator, or a segment that has no suffix."""
    return _SEPARATOR.fullmatch(piece) is not None or unquote(piece) in _SPECIAL


def _decoded(value: str) -> str | None:
    """The text that a value of a query means; None if it means none."""
    if _BAD_ESCAPE.search(value):
        return None
    try:
        return unquote_to_bytes(value.replace("+", " ")).decode()
    except UnicodeError:
        return None


def _escapes(path: str) -> bool:
    """Whether a path is absolute or leads out of the folder that it is relative to."""
    depth = 0
    for segment in path.replace("\\", "/").split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(segment, 1)
        if depth < 0:
            return True
    return path.startswith(("/", "\\"))


def _is_short(path: str) -> bool:
    """Whether a path is short enough for the contract."""
    lengths = [len(segment.encode("utf-8", "surrogatepass")) for segment in path.split("/")]
    return sum(lengths) + len(lengths) - 1 <= MAX_PATH and max(lengths) <= MAX_SEGMENT


def order_changes(paths: Iterable[str], mapping: PathMapping) -> tuple[str, str] | None:
    """Return two paths whose order on the wire is another one; None if there are none."""
    own = CasePaths(prefix=mapping.prefix, suffix=mapping.suffix)
    try:
        written = {_bytes(path): _bytes(own.to_daemon(path)) for path in paths}
    except DialectError:
        # The request that names the path is not applicable either.
        return None
    in_order = sorted(written)
    for one, two in pairwise(in_order):
        if written[one] > written[two]:
            return one.decode("utf-8", "replace"), two.decode("utf-8", "replace")
    return None


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogatepass")
