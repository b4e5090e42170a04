"""The driver of an SDK's client: how it is built, and what starts it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from memconform.daemons.build import build_key, ensure_built
from memconform.daemons.discovery import find_manifest
from memconform.daemons.environment import BASE, for_daemon, shell_variables
from memconform.daemons.manifest import Build, Client, Manifest, load_client_manifest
from memconform.daemons.manifest_runner import fill_placeholders
from memconform.daemons.sdk_runner import Progress
from memconform.errors import UsageError


@dataclass(frozen=True, slots=True)
class _ClientBuild:
    """What is built for a client, apart from the SDK's daemon."""

    name: str
    requires: Sequence[str]
    build: Build | None


class ClientProgram:
    """The client of one manifest."""

    def __init__(self, reference: str, folder: Path) -> None:
        """Read the manifest of an SDK.

        Raises:
            UsageError: as `find_manifest` and `load_manifest`; `no_client` without `[client]`.
        """
        path = find_manifest(reference, folder)
        manifest = load_client_manifest(path)
        if manifest.client is None:
            raise UsageError(
                f"{path} has no [client]",
                code="no_client",
                hint="name the driver of the SDK's client there; sdks/DRIVER.md says how",
            )
        client: Client = manifest.client
        self.has_daemon = isinstance(manifest, Manifest)
        """Whether the manifest describes a daemon as well."""
        self.reference = reference
        self.name = manifest.name
        self.folder = path.parent.resolve()
        self.known = None if client.known is None else self.folder / client.known
        """Its list of known failures."""
        self._command = client.command
        requires = manifest.requires if client.requires is None else client.requires
        self.buildable = _ClientBuild(f"{self.name}-client", requires, client.build)
        """What is built for it."""
        self._build_dir = self.folder

    def build_hash(self) -> str:
        """The digest by which its build is cached; raises as `build_key`."""
        return build_key(self.buildable, self.folder)

    async def build(self, progress: Progress) -> None:
        """Build it; raises as `ensure_built`."""
        key = self.build_hash()
        self._build_dir = await ensure_built(self.buildable, self.folder, key, progress)

    def argv(self) -> list[str]:
        """The command of its driver."""
        values = {"build_dir": str(self._build_dir), "python": sys.executable}
        return [fill_placeholders(part, values) for part in self._command]

    def environment(self) -> dict[str, str]:
        """The environment of its driver: what any program needs."""
        return for_daemon(shell_variables(list(BASE)))


def find_client(reference: str, folder: Path) -> ClientProgram | None:
    """The client of a reference, if it is that of a manifest that has one.

    Raises:
        UsageError: as `load_manifest`.
    """
    try:
        return ClientProgram(reference, folder)
    except UsageError as error:
        if error.code in ("no_client", "unknown_sdk"):
            return None
        raise
