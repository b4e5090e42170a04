"""Provenance that results and reports record: program, command, machine and revision."""

import platform
import subprocess
from collections.abc import Iterable
from datetime import datetime

from memconform import __version__
from memconform.records import Record


class Origin(Record):
    """The harness version and the command that produced a file."""

    harness_version: str
    command: list[str]

    @classmethod
    def of(cls, command: Iterable[str]) -> "Origin":
        return Origin(harness_version=__version__, command=list(command))


class HostOrigin(Origin):
    """An origin with the machine, for files whose figures may depend on it."""

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
    """The fields that every report begins with."""

    schema_version: str
    started_at: datetime
    exit_code: int


def host() -> str:
    """Operating system and processor architecture, such as `Linux x86_64`."""
    return f"{platform.system()} {platform.machine()}"


def git_revision() -> str | None:
    """The revision of the working directory's checkout, with `-dirty` if it has changes.

    None outside a checkout, or if git is missing, fails or takes more than 5 s.
    """
    try:
        process = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],  # noqa: S607 - the user's git, wherever it is
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip()
