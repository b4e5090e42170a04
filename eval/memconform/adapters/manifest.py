"""The schema of `system.toml`, which describes a memory system behind an adapter."""

import hashlib
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memconform.contract.wire import Profile
from memconform.daemons.build import build_key, ensure_built
from memconform.daemons.discovery import sdks_folder
from memconform.daemons.manifest import (
    Argument,
    Build,
    Capabilities,
    Manifest,
    Name,
    Serve,
    Variable,
)
from memconform.daemons.sdk_runner import Progress
from memconform.errors import DaemonError, UsageError
from memconform.validation_faults import require_placeholders, validation_faults

MANIFEST = "system.toml"
_FLAGS = {"upstream": "--upstream scripted", "embed_model": "--embed-model MODEL"}
PLACEHOLDERS = tuple(_FLAGS)
"""What is replaced in settings and in variables of `[upstream.scripted]`."""
_MOST_BYTES = 1 << 20

_VENV = '"$1" -m venv "$0" && "$0/bin/python" -m pip install --disable-pip-version-check -r "$2"'


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SystemUpstream(_Table):
    """How the system is told where its models are."""

    scripted: dict[Variable, Argument] = Field(default_factory=dict)
    """Variables with `--upstream scripted`; `{upstream}` is the upstream's address without a path,
    `{embed_model}` the model of `--embed-model`."""


class SystemManifest(_Table):
    """A system: its adapter, what that needs, and the settings it is measured with."""

    name: Name
    version: str
    """Of the system, as `requires` pins it."""
    licence: str
    adapter: Argument = "adapter.py"
    python: Annotated[str, Field(pattern=r"^3\.\d{1,2}$")] | None = None
    """The interpreter's version; None for the one that runs memconform."""
    requires: Argument | None = None
    """A file of pinned requirements; None for an adapter that needs none."""
    settings: dict[str, str] = Field(default_factory=dict)
    """Handed to the adapter's `start`; placeholders as in `[upstream.scripted]`."""
    timeout_s: float = Field(default=300, gt=0)
    """Seconds for a call of the adapter."""
    upstream: SystemUpstream | None = None


@dataclass(frozen=True, slots=True)
class AdapterProgram:
    """An adapter with what it takes to run it."""

    manifest: SystemManifest
    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / self.manifest.adapter

    @property
    def identity(self) -> str:
        """A digest of the manifest, the adapter and the requirements."""
        digest = hashlib.sha256(self.manifest.model_dump_json().encode())
        names = (self.manifest.adapter, self.manifest.requires)
        for name in filter(None, names):
            digest.update((self.folder / name).read_bytes())
        return digest.hexdigest()

    @property
    def lines(self) -> int:
        """Lines of the adapter that are neither empty nor comments."""
        lines = self.file.read_text("utf-8").splitlines()
        return sum(not line.lstrip().startswith("#") for line in lines if line.strip())

    async def interpreter(self, progress: Progress) -> str:
        """The path of its interpreter, whose packages are installed once.

        Raises:
            DaemonError: `toolchain_missing` without that version of Python; `build_failed`, with
                the end of pip's output, if the packages cannot be installed.
            UsageError: as `ensure_built`.
        """
        manifest = self.manifest
        python = sys.executable
        if manifest.python not in (None, f"3.{sys.version_info.minor}"):
            found = shutil.which(f"python{manifest.python}")
            if found is None:
                raise DaemonError(
                    f"{manifest.name} needs python{manifest.python}, which is not on PATH",
                    code="toolchain_missing",
                    hint=f"install it, or run without {manifest.name}",
                )
            python = found
        if manifest.requires is None:
            return python
        build = Build(
            command=["sh", "-c", _VENV, "{build_dir}", python, manifest.requires],
            inputs=[manifest.requires],
            timeout_s=3600,
        )
        sdk = Manifest(
            name=manifest.name,
            language="python",
            build=build,
            # Nobody serves it; a manifest must have these.
            serve=Serve(argv=["{python}"]),
            capabilities=Capabilities(profiles=[Profile.CORE], modes=["auto"]),
        )
        folder = await ensure_built(sdk, self.folder, build_key(sdk, self.folder), progress)
        return str(folder / "bin" / "python")

    def filled(self, values: Mapping[str, str], placeholders: Mapping[str, str]) -> dict[str, str]:
        """Values with their placeholders replaced.

        Raises:
            UsageError: `no_embedder` for a placeholder that has no value in this run.
        """
        for name, value in values.items():
            for placeholder, replacement in placeholders.items():
                if f"{{{placeholder}}}" in value and not replacement:
                    raise UsageError(
                        f"{self.folder / MANIFEST}: {name} needs {{{placeholder}}}",
                        code="no_embedder",
                        hint=f"add {_FLAGS[placeholder]}",
                    )
        return {name: _replaced(value, placeholders) for name, value in values.items()}


def known_systems(folder: Path) -> dict[str, Path]:
    """Manifests by name, from `sdks/adapters/*/system.toml` of the checkout."""
    manifests = sorted((sdks_folder(folder) / "adapters").glob(f"*/{MANIFEST}"))
    return {path.parent.name: path for path in manifests}


def load_system(path: Path) -> AdapterProgram:
    """Read a `system.toml`, given by its path or its folder.

    Raises:
        UsageError: `manifest_missing` if it cannot be read; `manifest_invalid`, with every fault.
    """
    file = path / MANIFEST if path.is_dir() else path
    try:
        content = file.read_text(encoding="utf-8-sig")
        manifest = SystemManifest.model_validate(tomllib.loads(content))
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}", code="manifest_missing", hint="check --system"
        ) from error
    except UnicodeDecodeError as error:
        raise _invalid(file, f"not UTF-8 at byte {error.start}") from error
    except tomllib.TOMLDecodeError as error:
        raise _invalid(file, str(error)) from error
    except ValidationError as error:
        raise _invalid(file, "\n".join(validation_faults(error, quoted=True))) from error
    program = AdapterProgram(manifest, file.parent)
    if faults := list(_faults(program)):
        raise _invalid(file, "\n".join(faults))
    return program


def _replaced(text: str, placeholders: Mapping[str, str]) -> str:
    for placeholder, replacement in placeholders.items():
        text = text.replace(f"{{{placeholder}}}", replacement)
    return text


def _faults(program: AdapterProgram) -> Iterator[str]:
    manifest = program.manifest
    for key, name in (("adapter", manifest.adapter), ("requires", manifest.requires)):
        if name is not None and not (program.folder / name).is_file():
            yield f"{key}: {program.folder / name} is not a file"
    scripted = manifest.upstream.scripted if manifest.upstream is not None else {}
    for table, values in (("settings", manifest.settings), ("upstream.scripted", scripted)):
        for name, value in values.items():
            try:
                require_placeholders(value, PLACEHOLDERS, only_misspelt=True)
            except ValueError as error:
                yield f"{table}.{name}: {error}"


def _invalid(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path}: {reason}", code="manifest_invalid", hint="docs/SYSTEMS.md describes its keys"
    )
