"""`memconform info`."""

import platform
import shutil
import subprocess
from pathlib import Path

import click
from pydantic import BaseModel

from memconform import __version__
from memconform.cli.commands import Command
from memconform.cli.options import json_file, schema
from memconform.cli.output_files import json_target
from memconform.contract.wire import CONTRACT_VERSION
from memconform.daemons.discovery import known_sdks, working_folder
from memconform.daemons.manifest import load_manifest
from memconform.datasets.registry import shipped
from memconform.errors import UsageError
from memconform.printing.errors import render_error
from memconform.printing.escaping import Lines
from memconform.printing.output import echo

_TOOLCHAINS = {"python": ["python3", "--version"], "go": ["go", "version"], "node": ["node", "-v"]}


class SdkInfo(BaseModel, defer_build=True):
    """An SDK as `info` shows it."""

    name: str
    manifest: str
    language: str | None = None
    profiles: list[str] = []
    modes: list[str] = []
    missing: list[str] = []
    """Required programs that are not on PATH."""
    error: str | None = None


class Info(BaseModel, defer_build=True):
    """The report of `info --json`."""

    schema_version: str = "memconform/info@1"
    memconform: str
    contract: str
    python: str
    toolchains: dict[str, str | None]
    sdks: list[SdkInfo]
    datasets: dict[str, str]


@click.command("info", cls=Command, examples=("memconform info", "memconform info --json -"))
@json_file
@schema("cli.info.command:Info")
def command(json_file: str | None) -> None:
    """Show the available SDKs, toolchains and datasets."""
    info = Info(
        memconform=__version__,
        contract=CONTRACT_VERSION,
        python=platform.python_version(),
        toolchains={name: _version(argv) for name, argv in _TOOLCHAINS.items()},
        sdks=[_sdk(name, path) for name, path in known_sdks(working_folder()).items()],
        datasets={name: str(path) for name, path in shipped().items()},
    )
    if json_file != "-":
        _show(info)
    if json_file is not None:
        with json_target(json_file) as target:
            target.write_json(info, indent=2)


def _sdk(name: str, path: Path) -> SdkInfo:
    try:
        manifest = load_manifest(path)
    except UsageError as error:
        return SdkInfo(name=name, manifest=str(path), error=render_error(error))
    return SdkInfo(
        name=name,
        manifest=str(path),
        language=manifest.language,
        profiles=list(manifest.capabilities.profiles),
        modes=list(manifest.capabilities.modes),
        missing=[program for program in manifest.requires if shutil.which(program) is None],
    )


def _version(argv: list[str]) -> str | None:
    """Return the version that a toolchain prints; None if it is missing or fails."""
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip() or None


def _show(info: Info) -> None:
    echo(f"memconform {info.memconform}, contract {info.contract}, Python {info.python}")
    echo()
    echo("toolchains")
    for name, version in info.toolchains.items():
        echo(f"  {name:<8} {version or 'not found'}")
    echo()
    echo("SDKs")
    for sdk in info.sdks:
        if sdk.error is not None:
            echo(f"  {sdk.name:<8} unusable")
            echo(Lines(sdk.error))
            continue
        echo(f"  {sdk.name:<8} {sdk.language}; profiles {', '.join(sdk.profiles)};")
        echo(f"  {'':<8} modes {', '.join(sdk.modes)}")
        if sdk.missing:
            echo(f"  {'':<8} cannot run here: {', '.join(sdk.missing)} not on PATH")
    if not info.sdks:
        echo("  none: the reference SDKs need a checkout; --sdk also takes a path to an sdk.toml")
    echo()
    echo("datasets")
    echo(f"  {', '.join(info.datasets) or 'none'}")
