"""The interface through which every SDK is built and served."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from memconform.contract.dialect import Dialect
from memconform.contract.names import Embedder, Reader
from memconform.contract.wire import Mode, Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest import Manifest, Seed
from memconform.daemons.ports import loopback_host
from memconform.daemons.process import DaemonProcess
from memconform.daemons.resources import Resources
from memconform.errors import UsageError


@dataclass(frozen=True, slots=True)
class Launch:
    """The parameters of one start of a daemon."""

    run_id: str
    folder: Path
    """Holds the log and the daemon's state; it must exist. Absolute, because the daemon has another
    working directory: a relative path that a case names would not exist for it."""
    port: int = 0
    """0 picks a free one."""
    host: str = field(default_factory=loopback_host)
    """Empty for an address without a host, such as `:8080`."""
    upstream: str | None = None
    """Address of the scripted upstream; None if there is none."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Set for this start only; take precedence over all others."""
    arguments: Sequence[str] = ()
    """Appended to those of the manifest."""
    only_stdout: bool = False
    """Whether standard error is discarded, so that the log contains standard output only."""
    sampled: bool = False
    """Whether its memory and CPU time are sampled, which costs some of both."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", self.folder.absolute())

    @property
    def reachable_host(self) -> str:
        """The host at which the harness expects the daemon, unless it announces another one."""
        return self.host or loopback_host()

    @property
    def state(self) -> Path:
        """The folder of the daemon's persistent state."""
        return self.folder / "state"


class Daemon(Protocol):
    """A running daemon that answers."""

    base_url: str
    ready_ms: float | None
    """Milliseconds from launch to readiness; None if the daemon was already running."""

    @property
    def process(self) -> DaemonProcess | None:
        """None if the harness did not start it and must not signal it."""
        ...

    async def wait_exit(self) -> str:
        """Wait until the daemon ends; returns how it ended."""
        ...

    def log_tail(self) -> str:
        """The last lines of its output; empty if the harness does not capture it."""
        ...

    def resources(self) -> Resources | None:
        """What it has used; None if it is not sampled."""
        ...


@runtime_checkable
class RestartableDaemon(Protocol):
    """A daemon that can be restarted on its state, at the same address."""

    state: Path
    """The folder of its persistent state."""

    async def restart(self) -> None:
        """Stop the daemon and start it again; raises DaemonError if it does not start."""
        ...


Progress = Callable[[str], None]
"""Called with a line of text when something takes long."""


class SdkRunner(ABC):
    """Serves one SDK's daemon. Subclass it for what an sdk.toml cannot express."""

    name: str
    language: str = "unknown"
    profiles: tuple[Profile, ...] = (Profile.CORE, Profile.ASK)
    modes: tuple[Mode, ...] | None = None
    """Retrieval modes that the SDK claims; None if it makes no claim."""
    readers: tuple[Reader, ...] | None = None
    """Readers that the SDK claims; None claims all."""
    embedders: tuple[Embedder, ...] | None = None
    """Embedders that the SDK claims; None claims all."""
    optional_modes: tuple[Mode, ...] = ()
    """Modes whose availability depends on the user's configuration."""
    seed: Seed = Seed.model_construct()
    dialect: Dialect | None = None
    """How its wire differs from the contract's; None if it speaks the contract."""
    upstream: UpstreamKind = "own"
    """The kind of upstream that is in use."""
    can_be_scripted: bool = False
    """Whether it can be configured to call the scripted upstream."""
    scripted_modes: tuple[Mode, ...] = ()
    """Modes that the SDK claims in addition with the scripted upstream."""
    restartable: bool = False
    """Whether it honours a launch's variables, arguments and folder, and stops on request."""
    takes_address: bool = False
    """Whether it passes host and port to the daemon as one address, which can lack the host."""
    known_failures: Path | None = None
    """A file that lists conformance checks that are known to fail."""
    manifest_file: Path | None = None
    """The sdk.toml that describes it, by its path as it was given."""
    has_contract: bool = True
    """Whether its daemon promises what the contract does. A memory system behind an adapter does
    not: what it does not find is a finding, and no reason not to measure it."""
    call_timeout_s: float = 0
    """Seconds that a call may take in any case, whatever the limits of a run are."""
    managed: bool = True
    """Whether the harness starts the daemon and may empty its brains."""

    @property
    def auto_modes(self) -> tuple[Mode, ...] | None:
        """Modes in which it claims to serve `auto`; None if it makes no claim.

        The contract has `auto` mean hybrid wherever that is available, except with the feature
        hash (core.mode.served), and nobody knows the embedder of every daemon.
        """
        if self.modes is None:
            return None
        if Mode.HYBRID in self.modes:
            return (Mode.HYBRID, Mode.BM25)
        claimed = (*self.modes, *self.optional_modes)
        return tuple(mode for mode in claimed if mode not in (Mode.AUTO, Mode.CONVERSATION))

    def claims(self, mode: Mode) -> bool:
        """Whether the SDK may serve a mode; one that makes no claim may serve any."""
        return self.modes is None or mode in (*self.modes, *self.optional_modes)

    def require_claimed(self, mode: Mode, *, also: Sequence[Mode] = (), more: str = "") -> None:
        """Raise UsageError `mode_not_claimed` unless the SDK claims a mode, or `also` has it.

        The hint names the modes that it claims, and `more`, but no upstream that is in use.
        """
        if self.modes is None or self.claims(mode) or mode in also:
            return
        hints = [f"it claims {', '.join((*self.modes, *self.optional_modes))}"]
        if mode in self.scripted_modes and self.upstream == "own" and self.can_be_scripted:
            hints.append("add --upstream scripted, with which it claims the mode")
        else:
            hints.append("if it serves the mode, add it to [capabilities] modes of the sdk.toml")
        hints += [more] if more else []
        raise UsageError(
            f"{self.name} does not claim mode {mode.value}",
            code="mode_not_claimed",
            hint="; or ".join(hints),
        )

    def describe(self, manifest: Manifest, folder: Path) -> None:
        """Take the name, the claims, the seeding and the dialect from a manifest in `folder`."""
        self.name = manifest.name
        self.language = manifest.language
        self.profiles = tuple(manifest.capabilities.profiles)
        self.modes = tuple(manifest.capabilities.modes)
        readers, embedders = manifest.capabilities.readers, manifest.capabilities.embedders
        self.readers = None if readers is None else tuple(readers)
        self.embedders = None if embedders is None else tuple(embedders)
        self.known_failures = folder / manifest.known.file if manifest.known else None
        self.seed, self.dialect = manifest.seed, manifest.dialect
        if self.dialect is not None and "via" not in self.seed.model_fields_set:
            self.seed = self.seed.model_copy(update={"via": self.dialect.seed_via})

    def use_variables(self, variables: Mapping[str, str]) -> None:
        """Set these variables at later starts.

        Raises:
            UsageError: `foreign_environment` if the runner cannot set variables.
        """
        if variables:
            raise UsageError(
                f"memconform cannot set the environment of {self.name}",
                code="foreign_environment",
                hint="--env works only for daemons that memconform starts from an sdk.toml",
            )

    def variables(self) -> dict[str, str]:
        """The variables that the user's shell and command line set, with secrets masked."""
        return {}

    def use_upstream(self, kind: UpstreamKind) -> None:
        """Use this kind of upstream at later starts.

        Raises:
            UsageError: `no_upstream` or `no_real_upstream` if the SDK cannot use it.
        """
        if kind != "own":
            raise UsageError(
                f"{self.name} cannot be configured to call an upstream",
                code="no_upstream",
                hint="add [upstream] to the sdk.toml, or use --upstream own"
                if self.managed
                else "set its models where you start it, and use --upstream own",
            )

    def use_modes(self, modes: Collection[Mode]) -> None:  # noqa: B027 - most need nothing
        """Prepare to be measured in these modes only; call it after `use_upstream`."""

    def build_hash(self) -> str | None:
        """Hash of everything from which the daemon is built; None if unknown.

        Raises:
            UsageError: if declared sources are missing.
        """
        return None

    async def build(self, progress: Progress) -> None:  # noqa: B027 - many need none
        """Build the daemon; raises DaemonError if that fails."""

    @abstractmethod
    def serve(self, launch: Launch) -> AbstractAsyncContextManager[Daemon]:
        """Start the daemon, yield it once it is ready, and stop it at the end.

        Raises:
            DaemonError: if it does not become ready, or leaves processes behind.
        """
