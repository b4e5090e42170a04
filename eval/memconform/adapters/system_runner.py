"""Serves a memory system as the daemon of an SDK, for verbs that measure daemons."""

from pathlib import Path

from memconform.adapters.contract_daemon import EMBED_MODEL
from memconform.adapters.program import AdapterProgram, load_system
from memconform.adapters.session import BATCH
from memconform.contract.dialect import Dialect
from memconform.contract.wire import Mode, Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest import (
    Capabilities,
    Env,
    Manifest,
    PassedVariable,
    Seed,
    Serve,
    UpstreamSettings,
)
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import Progress

_NOTHING_OF = {
    "brain": ("chunks", "vectors", "pending"),
    "ingested": ("documentId", "chunkCount", "bytes", "tookMs"),
    "ingested_batch": ("tookMs",),
    "chunk": ("documentId",),
    "search_response": ("tookMs", "trace"),
}
"""What the daemon of a system does not say."""


class SystemRunner(ManifestRunner):
    """Serves a system; its one mode is `auto`, and what it does not find is no fault of its."""

    has_contract = False
    restartable = False

    def __init__(self, program: AdapterProgram) -> None:
        super().__init__(_manifest(program), program.folder.resolve())
        self.program = program

    @classmethod
    def of(cls, path: Path) -> "SystemRunner":
        """The runner of a `system.toml`; raises as `load_system`."""
        return cls(load_system(path.resolve()))

    def use_upstream(self, kind: UpstreamKind) -> None:
        """As for any SDK.

        Raises:
            UsageError: `no_embedder` if the system needs an upstream that it does not get.
        """
        self.program.require_services(scripted=kind == "scripted", embed_model="named")
        super().use_upstream(kind)

    def build_hash(self) -> str:
        return self.program.identity

    async def build(self, progress: Progress) -> None:
        """Install its packages, once.

        Raises:
            DaemonError: `not_as_root`, and as `AdapterProgram.install`.
        """
        self.program.require_not_root()
        await super().build(progress)


def _manifest(program: AdapterProgram) -> Manifest:
    """An SDK whose daemon is the adapter's."""
    flags = {
        "manifest": str(program.path.resolve()),
        "python": program.installed("{build_dir}"),
        "folder": "{state_dir}",
        "host": "{host}",
        "port": "{port}",
        "upstream": "{upstream}",
    }
    module = ("{python}", "-m", "memconform.adapters.contract_daemon")
    return Manifest(
        name=program.name,
        language="memory system",
        requires=list(program.requires),
        build=program.build,
        serve=Serve(argv=[*module, *(f"--{name}={value}" for name, value in flags.items())]),
        env=Env(pass_=[PassedVariable(name=EMBED_MODEL)]),
        seed=Seed(via="batch", batch=BATCH),
        dialect=Dialect(
            name="system",
            rank_by="position",
            routes={"version": False, "list_brains": False},
            objects={name: dict.fromkeys(keys, False) for name, keys in _NOTHING_OF.items()},
        ),
        upstream=UpstreamSettings(scripted={"MEMCONFORM_SCRIPTED": "1"}),
        capabilities=Capabilities(profiles=[Profile.CORE], modes=[Mode.AUTO]),
    )
