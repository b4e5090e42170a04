"""Provenance that results and reports record: program, command, machine and revision."""

import platform
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from memconform import __version__
from memconform.records import Record


class Origin(Record):
    """The harness version and the command that produced a file."""

    harness_version: str
    command: list[str]

    @classmethod
    def of(cls, command: Iterable[str]) -> "Origin":
        return Origin(harness_version=__version__, command=list(command))


class ModelService(Record):
    """How a model service was reached, without secrets.

    It decides no reply, so it is no part of a run's settings: a run resumes behind another proxy.
    """

    provider: str
    address: str
    """Without credentials."""
    address_variable: str
    """Empty if no variable sets the address."""
    proxy: str
    """Without credentials, with its variable; empty if the service is reached directly."""
    certificates: str
    """The file or folder of SSL_CERT_FILE or SSL_CERT_DIR; empty for the system's, or no TLS."""
    connect_timeout_s: float
    key_variable: str
    """The variable with the key; empty if none is needed."""
    headers: list[str]
    """Names of the headers that are sent besides the client's own."""
    api_version: str
    """For Azure OpenAI only; empty for the address without versions."""

    def line(self) -> str:
        """The settings on one line."""
        secure = self.address.startswith("https:") or self.proxy.startswith("https:")
        parts = [
            f"{self.address} ({self.address_variable})" if self.address_variable else self.address,
            f"proxy {self.proxy}" if self.proxy else "direct",
            f"certificates {self.certificates or ('of the system' if secure else 'not needed')}",
            f"connect timeout {self.connect_timeout_s:g} s",
            f"key {self.key_variable}" if self.key_variable else "no key",
        ]
        parts += [f"api-version {self.api_version}"] if self.api_version else []
        parts += [f"headers {', '.join(self.headers)}"] if self.headers else []
        return "; ".join(parts)


_services: list[ModelService] = []


def note_service(service: ModelService) -> None:
    """Record a model service in every origin that this process makes from now on."""
    if service not in _services:
        _services.append(service)


def forget_services() -> None:
    """Forget them; for tests."""
    _services.clear()


class HostOrigin(Origin):
    """An origin with the machine, for files whose figures may depend on it."""

    python_version: str
    host: str
    git_revision: str | None
    model_services: list[ModelService] = Field(default_factory=list)
    """The services of judges, readers and other models; without the scripted one."""

    @classmethod
    def of(cls, command: Iterable[str]) -> "HostOrigin":
        return HostOrigin(
            harness_version=__version__,
            command=list(command),
            python_version=platform.python_version(),
            host=host(),
            git_revision=git_revision(),
            model_services=list(_services),
        )


class PartOrigin(HostOrigin):
    """Where a part of a merged result comes from."""

    run_id: str
    shards: list[int]
    """The shards of the whole that it has, from 1."""
    started_at: datetime
    resumed_from: str | None = None

    @classmethod
    def of_part(
        cls,
        origin: HostOrigin,
        run_id: str,
        shards: list[int],
        started_at: datetime,
        resumed_from: str | None = None,
    ) -> "PartOrigin":
        """The origin of a part, from that of its result."""
        return cls(
            **{name: getattr(origin, name) for name in HostOrigin.model_fields},
            run_id=run_id,
            shards=shards,
            started_at=started_at,
            resumed_from=resumed_from,
        )


@dataclass(frozen=True, slots=True)
class Start:
    """When a command began."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _clock: float = field(default_factory=time.perf_counter)

    def header(self, command: Iterable[str]) -> dict[str, Any]:
        """When, how long and by what a report was made: `started_at`, `took_s` and its origin."""
        took_s = round(time.perf_counter() - self._clock, 3)
        return {"started_at": self.at, "took_s": took_s, **dict(HostOrigin.of(command))}


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
