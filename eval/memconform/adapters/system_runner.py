"""Serves a memory system as the daemon of an SDK, for verbs that measure daemons."""

from collections.abc import Mapping
from pathlib import Path

from memconform.adapters.program import (
    DEFAULT_MODEL,
    EMBED_MODEL,
    UPSTREAM,
    AdapterProgram,
    load_system,
)
from memconform.adapters.session import BATCH
from memconform.contract.dialect import Dialect
from memconform.contract.wire import Mode, Profile
from memconform.daemons.kinds import UpstreamKind
from memconform.daemons.manifest import (
    Capabilities,
    Env,
    Manifest,
    PassedVariable,
    Ready,
    Seed,
    Serve,
    UpstreamSettings,
)
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import Progress
from memconform.errors import UsageError

_NOTHING_OF = {
    "brain": ("chunks", "vectors", "pending"),
    "ingested": ("documentId", "chunkCount", "bytes", "tookMs"),
    "ingested_batch": ("tookMs",),
    "chunk": ("documentId",),
    "search_response": ("trace",),
}
"""What the daemon of a system does not say."""


class SystemRunner(ManifestRunner):
    """Serves a system; its one mode is `auto`, and what it does not find is a finding."""

    has_contract = False
    restartable = False

    def __init__(self, program: AdapterProgram) -> None:
        super().__init__(_manifest(program), program.folder.resolve())
        self.program = program
        if program.manifest.lacks_model:
            self.name = f"{program.name}-no-model"
        self.call_timeout_s = program.manifest.timeout_s

    @classmethod
    def of(cls, path: Path) -> "SystemRunner":
        """The runner of a `system.toml`.

        Raises:
            UsageError: as `load_system`.
        """
        return cls(load_system(path.resolve()))

    def use_upstream(self, kind: UpstreamKind) -> None:
        """Use this kind of upstream.

        Raises:
            UsageError: `no_embedder` if the system needs an upstream that it does not get;
                `no_real_upstream` for a real one.
        """
        if kind == "real":
            raise UsageError(
                f"--upstream real: {self.name} is a memory system, and gets no variables of yours",
                code="no_real_upstream",
                hint="use --upstream scripted, or write the service's address into its [settings]",
            )
        self.program.require_services(scripted=kind == "scripted", embed_model="named")
        super().use_upstream(kind)

    def use_variables(self, variables: Mapping[str, str]) -> None:
        """Set the name of the embedding model.

        Raises:
            UsageError: `foreign_environment` for any other variable, which no adapter gets.
        """
        if others := sorted(variables.keys() - {EMBED_MODEL}):
            raise UsageError(
                f"--env {others[0]}: the adapter of {self.name} does not receive it",
                code="foreign_environment",
                hint=f"write it into [settings] or [upstream.scripted]; --env takes {EMBED_MODEL}",
            )
        super().use_variables(variables)

    def variables(self) -> dict[str, str]:
        """The embedding model, if the system uses that of the scripted upstream."""
        model = {EMBED_MODEL: DEFAULT_MODEL} if self.upstream == "scripted" else {}
        return model | super().variables()

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
        "state": "{state_dir}",
        "host": "{host}",
        "port": "{port}",
    }
    module = ("{python}", "-m", "memconform.adapters.contract_daemon")
    return Manifest(
        name=program.name,
        language="memory system",
        requires=list(program.requires),
        build=program.build,
        serve=Serve(argv=[*module, *(f"--{name}={value}" for name, value in flags.items())]),
        env=Env(pass_=[PassedVariable(name=EMBED_MODEL)]),
        ready=Ready(timeout_s=program.manifest.timeout_s),
        seed=Seed(via="batch", batch=BATCH),
        dialect=Dialect(
            name="system",
            rank_by="position",
            routes={"list_brains": False},
            objects={name: dict.fromkeys(keys, False) for name, keys in _NOTHING_OF.items()},
        ),
        upstream=UpstreamSettings(scripted={UPSTREAM: "{upstream}"}),
        capabilities=Capabilities(profiles=[Profile.CORE], modes=[Mode.AUTO]),
    )
