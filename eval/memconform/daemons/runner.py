"""The door through which every SDK is served, whatever stands behind it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from memconform.contract.wire import Mode, Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.errors import UsageError


@dataclass(frozen=True, slots=True)
class Launch:
    """What one start of a daemon is given."""

    run_id: str
    folder: Path
    """For the log and the daemon's state; it must exist."""
    port: int = 0
    """0 picks a free one."""
    host: str = "127.0.0.1"
    upstream: str | None = None
    """Address of the scripted upstream, where there is one."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """For this start only, before all others."""
    arguments: Sequence[str] = ()
    """Behind those of the manifest."""
    only_stdout: bool = False
    """Whether what it writes to standard error is thrown away, so that its log is its output."""
    sampled: bool = False
    """Whether its memory and time are looked at while it runs, which costs some of both."""

    @property
    def state(self) -> Path:
        """What the daemon keeps."""
        return self.folder / "state"


class Daemon(Protocol):
    """A daemon that answers."""

    base_url: str
    ready_ms: float | None
    """From launch to ready; None for a daemon that was running before."""
    process: DaemonProcess | None
    """None where it is not ours to signal."""

    async def wait_exit(self) -> str:
        """Return how the daemon ended, once it has."""
        ...

    def log_tail(self) -> str:
        """The last lines that it wrote; empty where its output is not ours."""
        ...

    def resources(self) -> Resources | None:
        """What it has used; None where that was not looked at."""
        ...


Progress = Callable[[str], None]
"""Called with a line when something takes long."""


class SdkRunner(ABC):
    """Serves one SDK's daemon. Subclass it for what an sdk.toml cannot say."""

    name: str
    language: str = "unknown"
    profiles: tuple[Profile, ...] = (Profile.CORE, Profile.ASK)
    modes: tuple[Mode, ...] | None = None
    """Retrieval modes that it claims; None where it claims nothing."""
    optional_modes: tuple[Mode, ...] = ()
    """Modes that it has or has not, as the user has set it up."""
    seed_via: Literal["batch", "http"] = "http"
    scripted_modes: tuple[Mode, ...] = ()
    """Modes that it claims besides where our upstream answers its calls."""
    restartable: bool = False
    """Whether it heeds a launch's variables, arguments and folder, and ends when it is told."""
    known_failures: Path | None = None
    """A list of conformance checks that are known to fail."""
    managed: bool = True
    """Whether the daemon and its brains are the harness's own to start and to empty."""

    def use_variables(self, given: Mapping[str, str]) -> None:
        """Have later starts set these variables; raises UsageError where they cannot be."""
        if given:
            raise UsageError(
                f"the environment of {self.name} is not the harness's to set",
                code="foreign_environment",
                hint="--env is for SDKs that an sdk.toml describes",
            )

    def variables(self) -> dict[str, str]:
        """What the user's shell and command line give a daemon; secrets are not told."""
        return {}

    def use_upstream(self, kind: UpstreamKind) -> None:
        """Have later starts call that upstream; raises UsageError where it cannot be."""
        if kind != "own":
            raise UsageError(
                f"{self.name} cannot be pointed at an upstream",
                code="no_upstream",
                hint="that is for SDKs whose sdk.toml has [upstream]",
            )

    def build_hash(self) -> str | None:
        """What the daemon is built from, as a hash; None where that is not known.

        Raises:
            UsageError: where the sources are not what the SDK says.
        """
        return None

    async def build(self, progress: Progress) -> None:  # noqa: B027 - many need none
        """Make the daemon ready to start; raises DaemonError where that fails."""

    @abstractmethod
    def serve(self, launch: Launch) -> AbstractAsyncContextManager[Daemon]:
        """Start the daemon, hand it out once it is ready, stop it at the end.

        Raises:
            DaemonError: where it does not become ready.
        """
