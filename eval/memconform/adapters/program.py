"""The program of an adapter: where its manifest is, what it needs, and how it is started."""

import hashlib
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from memconform.adapters.manifest import MANIFEST, McpServer, SystemManifest, mcp_faults
from memconform.daemons.build import build_key, ensure_built
from memconform.daemons.discovery import sdks_folder
from memconform.daemons.manifest import Build, read_tables, require_no_faults
from memconform.daemons.sdk_runner import Progress
from memconform.errors import DaemonError, UsageError, nearest
from memconform.validation_faults import require_placeholders

EMBED_MODEL = "JB_EMBED_MODEL"
"""The variable that names the upstream's embedding model, for verbs without a flag."""
DEFAULT_MODEL = "fh256-1"
UPSTREAM = "MEMCONFORM_UPSTREAM"
"""The variable with the address of the scripted upstream; not set without one."""
_MCP_BRIDGE = Path(__file__).with_name("mcp_bridge.py")
_FLAGS = {"upstream": "--upstream scripted", "embed_model": "--embed-model MODEL"}
"""By what is replaced in settings and in variables of `[upstream.scripted]`: the flag for it."""
_PINNED = re.compile(r"[\w.-]+(\[[^]]*\])? *={2,3} *[\w.+!-]+ *(;.*)?")
_NPM = 'cp package.json package-lock.json "$0" && cd "$0" && npm ci --ignore-scripts --no-fund'
_LOCK = "package-lock.json"
_VENV = '"$1" -m venv "$0" && "$0/bin/python" -m pip install --disable-pip-version-check -r "$2"'


@dataclass(frozen=True, slots=True)
class AdapterProgram:
    """An adapter with what it takes to run it."""

    manifest: SystemManifest
    path: Path
    """That of the manifest."""

    @property
    def folder(self) -> Path:
        return self.path.parent

    @property
    def file(self) -> Path:
        """The adapter; of an MCP server, the manifest."""
        return self.path if self.manifest.mcp is not None else self.folder / self.manifest.adapter

    @property
    def identity(self) -> str:
        """A digest of the manifest, the adapter and the requirements."""
        digest = hashlib.sha256(self.manifest.model_dump_json().encode())
        requires = self.manifest.requires
        for path in (self.file, *([self.folder / requires] if requires else [])):
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def is_same(self, other: "AdapterProgram") -> bool:
        """Whether both are one manifest, however its path was given."""
        return (self.folder.resolve(), self.manifest) == (other.folder.resolve(), other.manifest)

    @property
    def lines(self) -> int:
        """Lines of the adapter that are neither empty nor comments."""
        lines = self.file.read_text("utf-8").splitlines()
        return sum(not line.lstrip().startswith("#") for line in lines if line.strip())

    @property
    def form(self) -> Literal["system", "lines"]:
        """Whether it is a module, or a program that reads and writes JSON lines."""
        is_module = self.manifest.command is None and self.manifest.mcp is None
        return "system" if is_module else "lines"

    def command(self, python: str) -> list[str]:
        """What starts it: the absolute path of the module, or a program with its arguments.

        `python` is its interpreter or the folder of its packages, as `install` returns it.
        """
        if (mcp := self.manifest.mcp) is not None:
            here = "{packages}" if self.is_npm else "{python}"
            command = [part.replace(here, python) for part in mcp.command]
            table = mcp.model_copy(update={"command": command})
            return [sys.executable, "-I", str(_MCP_BRIDGE), table.model_dump_json()]
        path = str(self.file.absolute())
        return [part.replace("{adapter}", path) for part in self.manifest.command or ["{adapter}"]]

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def requires(self) -> tuple[str, ...]:
        """npm, or the interpreter, unless it is the one that runs memconform."""
        if self.is_npm:
            return ("node", "npm")
        return () if self._python == sys.executable else (self._python,)

    @property
    def is_npm(self) -> bool:
        """Whether its packages come from npm."""
        return self.manifest.requires == _LOCK

    @property
    def build(self) -> Build | None:
        """How its packages are installed; None if it needs none."""
        if self.manifest.requires is None:
            return None
        if self.is_npm:
            command = ["sh", "-c", _NPM, "{build_dir}"]
            return Build(command=command, inputs=["package.json", _LOCK], timeout_s=3600)
        return Build(
            command=["sh", "-c", _VENV, "{build_dir}", self._python, self.manifest.requires],
            inputs=[self.manifest.requires],
            timeout_s=3600,
        )

    def unpinned(self) -> list[str]:
        """The lines of its requirements that name no version."""
        if self.manifest.requires is None or self.is_npm:
            return []
        text = (self.folder / self.manifest.requires).read_text(encoding="utf-8", errors="replace")
        lines = (line.partition("#")[0].strip() for line in text.splitlines())
        return [line for line in lines if line and line[0] != "-" and not _PINNED.fullmatch(line)]

    @property
    def _python(self) -> str:
        version = self.manifest.python
        own = version in (None, f"3.{sys.version_info.minor}")
        return sys.executable if own else f"python{version}"

    async def install(self, progress: Progress) -> str:
        """The interpreter with its packages, which are installed once; of npm, their folder.

        Raises:
            DaemonError: `toolchain_missing` without that version of Python, or npm; `build_failed`,
                with the end of pip's or npm's output, if the packages cannot be installed.
            UsageError: as `ensure_built`.
        """
        folder = await ensure_built(self, self.folder, build_key(self, self.folder), progress)
        return self.installed(str(folder))

    def installed(self, build: str) -> str:
        """What `install` returns, if the build is in this folder."""
        if self.build is None:
            return self._python
        return build if self.is_npm else f"{build}/bin/python"

    def require_services(self, *, scripted: bool, embed_model: str) -> None:
        """Raise UsageError `no_embedder` if the system needs a service that the run does not have.

        Without the variables of `[upstream.scripted]` a system might invent vectors.
        """
        if self.variables(scripted=True) and not scripted:
            raise UsageError(
                f"{self.path}: [upstream.scripted] says where its models are",
                code="no_embedder",
                hint=f"add {_FLAGS['upstream']}",
            )
        services = {"upstream": scripted, "embed_model": bool(embed_model)}
        for name, value in (self.manifest.settings | self.variables(scripted=scripted)).items():
            for placeholder, is_there in services.items():
                if f"{{{placeholder}}}" in value and not is_there:
                    raise UsageError(
                        f"{self.path}: {name} needs {{{placeholder}}}",
                        code="no_embedder",
                        hint=f"add {_FLAGS[placeholder]}",
                    )

    def require_not_root(self) -> None:
        """Raise DaemonError `not_as_root` if root runs a system that refuses it."""
        if not self.manifest.root and os.geteuid() == 0:
            raise DaemonError(
                f"{self.name} does not run as root",
                code="not_as_root",
                hint="run memconform as another user; in a container: "
                "unshare --user --map-user=1000 --map-group=1000 memconform ...",
            )

    def variables(self, *, scripted: bool) -> dict[str, str]:
        """The variables of its upstream, with placeholders."""
        upstream = self.manifest.upstream
        return upstream.scripted if upstream is not None and scripted else {}


def filled(values: Mapping[str, str], placeholders: Mapping[str, str]) -> dict[str, str]:
    """Values with their placeholders replaced."""

    def replaced(text: str) -> str:
        for placeholder, replacement in placeholders.items():
            text = text.replace(f"{{{placeholder}}}", replacement)
        return text

    return {name: replaced(value) for name, value in values.items()}


def known_systems(folder: Path) -> dict[str, Path]:
    """Manifests by name, from `sdks/adapters/*/system.toml` of the checkout."""
    manifests = sorted((sdks_folder(folder) / "adapters").glob(f"*/{MANIFEST}"))
    return {path.parent.name: path for path in manifests}


def find_system(reference: str, folder: Path, *, also: Sequence[str] = ()) -> Path:
    """The manifest, or its folder, that a `--system` means: a known name, or a path.

    `also` are names that an error suggests, too.

    Raises:
        UsageError: `unknown_system`.
    """
    known = known_systems(folder)
    if reference in known:
        return known[reference]
    if not Path(reference).exists():
        names = (*also, *known)
        raise UsageError(
            f"no system {reference!r}",
            code="unknown_system",
            hint=nearest(reference, names) or f"give a path, or one of {', '.join(names)}",
        )
    return Path(reference)


def load_system(path: Path) -> AdapterProgram:
    """Read a `system.toml`, given by its path or its folder.

    Raises:
        UsageError: `manifest_missing` if it cannot be read; `manifest_invalid`, with every fault.
    """
    file = path / MANIFEST if path.is_dir() else path
    manifest = read_tables(file, MANIFEST, SystemManifest)
    program = AdapterProgram(manifest, file)
    require_no_faults(file, MANIFEST, _faults(program))
    return program


def _server_faults(program: AdapterProgram, mcp: McpServer) -> Iterator[str]:
    yield from mcp_faults(mcp)
    manifest = program.manifest
    other = "{python}" if program.is_npm else "{packages}"
    if any(other in part for part in mcp.command):
        kind = "npm has no interpreter of Python" if program.is_npm else "only npm has a folder"
        yield f"mcp.command: {other}: {kind}"
    if manifest.command is not None or "adapter" in manifest.model_fields_set:
        yield "mcp: it takes the place of adapter and command, omit them"
    if manifest.settings:
        yield "settings: an MCP server gets none; use mcp.env or [upstream.scripted]"


def _faults(program: AdapterProgram) -> Iterator[str]:
    manifest = program.manifest
    if manifest.command is not None and (manifest.python or manifest.requires):
        yield "command: python and requires are for Python modules, omit them"
    if manifest.mcp is not None:
        yield from _server_faults(program, manifest.mcp)
    if program.is_npm and manifest.mcp is None:
        yield f"requires: {_LOCK} is for MCP servers"
    files = {"requires": manifest.requires}
    if program.is_npm:
        files["requires, beside it"] = "package.json"
    if manifest.mcp is None:
        files["adapter"] = manifest.adapter
    for key, name in files.items():
        if name is not None and not (program.folder / name).is_file():
            yield f"{key}: {program.folder / name} is not a file"
    scripted = program.variables(scripted=True)
    for table, values in (("settings", manifest.settings), ("upstream.scripted", scripted)):
        for name, value in values.items():
            try:
                require_placeholders(value, tuple(_FLAGS), only_misspelt=True)
            except ValueError as error:
                yield f"{table}.{name}: {error}"
