"""Which session a document of the shared brain belongs to."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from memconform.replay.documents import FACTS, SESSIONS, PlacedSession
from memconform.replay.hits import DocumentKind

_SCOPES = {"global": "memory/global/", "project": FACTS, "raw": "raw/"}


@dataclass(frozen=True, slots=True)
class Placement:
    """Finds the session of a path, and the session ids that a question is filtered by."""

    sessions: Mapping[str, PlacedSession]
    """By the path of the session's document."""
    project: str

    def session_of(self, path: str) -> tuple[DocumentKind, PlacedSession]:
        """The kind of a document, and its session.

        Raises:
            KeyError: for a path that the brain does not have.
        """
        if path in self.sessions:
            return "session", self.sessions[path]
        stem, _, number = path.removeprefix(f"{FACTS}{self.project}/").rpartition("-")
        if not number.removesuffix(".md").isdecimal():
            raise KeyError(path)
        return "fact", self.sessions[f"{SESSIONS}{stem}.md"]

    def belongs_to(self, path: str, sessions: Collection[str]) -> bool:
        """Whether a document is one of these sessions, given by path, or a fact from one."""
        return self.session_of(path)[1].path in sessions


def session_filter(paths: Collection[str]) -> list[str]:
    """The values of `metadata.session_id` of sessions, given by path, and of their facts."""
    return [path.removeprefix(SESSIONS).removesuffix(".md") for path in paths]


def has_prefixes(
    path: str, *, path_prefix: str | None, scope: str | None, project: str | None
) -> bool:
    """Whether a path begins as the filters say (core.filter)."""
    return all(path.startswith(prefix) for prefix in _prefixes(path_prefix, scope, project))


def joint_prefix(*, path_prefix: str | None, scope: str | None, project: str | None) -> str | None:
    """The one prefix that says what filters say together; None without filters.

    A document that matches all of them begins with each, so that the longest includes the others.
    """
    return max(_prefixes(path_prefix, scope, project), key=len, default=None)


def _prefixes(path_prefix: str | None, scope: str | None, project: str | None) -> list[str]:
    prefixes = (
        path_prefix,
        _SCOPES[scope] if scope else None,
        f"{FACTS}{project}/" if project else None,
    )
    return [prefix for prefix in prefixes if prefix]
