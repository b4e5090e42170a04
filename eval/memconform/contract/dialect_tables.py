"""The tables inside `[dialect]` and the form of its keys."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator


class Table(BaseModel):
    """A table of an sdk.toml, which has no other keys than these."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class PathMapping(Table):
    """How the path of a document is written on the daemon's wire: prefix + path + suffix."""

    prefix: str = ""
    suffix: str = ""

    def to_daemon(self, path: str) -> str:
        """Return the daemon's path of a document."""
        return f"{self.prefix}{path}{self.suffix}"

    def covers(self, path: str) -> bool:
        """Whether a daemon's path is of this form."""
        is_long = len(path) >= len(self.prefix) + len(self.suffix)
        return is_long and path.startswith(self.prefix) and path.endswith(self.suffix)

    def from_daemon(self, path: str) -> str:
        """Return the document's path; a path that is not of this form is returned unchanged."""
        if not self.covers(path):
            return path
        return path.removeprefix(self.prefix).removesuffix(self.suffix)

    def folder_to_daemon(self, folder: str) -> str:
        """Return the daemon's path of a folder, which has no suffix; empty means the root."""
        return f"{self.prefix}{folder}" if folder else self.prefix.rpartition("/")[0]

    def prefix_to_daemon(self, path_prefix: str) -> str:
        """Return what the daemon's paths of documents begin with whose paths begin with this."""
        return f"{self.prefix}{path_prefix}"

    def folder_from_daemon(self, folder: str) -> str:
        """Return a folder's path; a path outside the prefix is returned unchanged."""
        return "" if folder == self.folder_to_daemon("") else folder.removeprefix(self.prefix)


class Auth(Table):
    """How the bearer token of `MEMCONFORM_AUTH_TOKEN` is sent."""

    header: str = "Authorization"
    value: str = Field(default="Bearer {token}", pattern=r"\{token\}")


_ROUTE = "POST /v1/brains/{brain}/search"
_DEFECTS = (
    f"{_ROUTE}: status 500, expected 200",
    f"{_ROUTE}: the daemon exits: exit status 1",
    f"{_ROUTE}: no response in time",
    f"{_ROUTE}: chunks is null",
    f"{_ROUTE}: missing key chunks",
    f"{_ROUTE}: wrong value at chunks.*.text",
)
"""Causes that can never be choices of a dialect."""


class Choice(Table):
    """A cause of red checks that is a choice of the dialect, not a defect."""

    cause: str = Field(min_length=1)
    """The cause as `conform` prints it; `*` matches any part of it."""
    reason: str = Field(min_length=1)

    @field_validator("cause")
    @classmethod
    def _require_a_choice(cls, cause: str) -> str:
        """Refuse a cause that would excuse what no dialect can choose."""
        defect = next((each for each in _DEFECTS if fnmatchcase(each, cause)), None)
        if defect is not None:
            raise ValueError(f"{cause!r} would excuse {defect!r} too, which is no choice")
        return cause


def _as_list(names: object) -> object:
    return [names] if isinstance(names, str) else names


Names = Annotated[list[str] | Literal[False], BeforeValidator(_as_list)]
"""Where a value is found: keys joined by `.`, the first of several that is present. A trailing `?`
says that all of them may be missing; False that the daemon has no such value."""


PLACE = r"[^.?]+(\.[^.?]+)*\??"
"""The form of a name in `Names`."""


def require_places(name: str, places: Mapping[str, str]) -> None:
    """Raise ValueError if two keys of a request would be sent at one place, or within another."""
    for key, place in places.items():
        for other, inner in places.items():
            if key != other and f"{inner}.".startswith(f"{place}."):
                raise ValueError(
                    f"objects.{name}: {key} and {other} cannot both be sent at {place!r}"
                )
