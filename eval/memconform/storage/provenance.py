"""What a result says of where it was made."""

import platform
import subprocess
from collections.abc import Iterable
from datetime import datetime

from memconform import __version__
from memconform.records import Record


class Origin(Record):
    """By which program, and which command, a file was made."""

    harness_version: str
    command: list[str]

    @classmethod
    def of(cls, command: Iterable[str]) -> "Origin":
        return Origin(harness_version=__version__, command=list(command))


class HostOrigin(Origin):
    """The same, and on what kind of machine: where a figure may depend on that."""

    python_version: str
    host: str
    git_revision: str | None

    @classmethod
    def of(cls, command: Iterable[str]) -> "HostOrigin":
        return HostOrigin(
            harness_version=__version__,
            command=list(command),
            python_version=platform.python_version(),
            host=host(),
            git_revision=git_revision(),
        )


class ReportHeader(Record):
    """What every report begins with."""

    schema_version: str
    started_at: datetime
    exit_code: int


def host() -> str:
    return f"{platform.system()} {platform.machine()}"


def git_revision() -> str | None:
    """The revision of the working folder's checkout, `-dirty` where it has changes; or None."""
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],  # noqa: S607 - the user's git, wherever it is
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
