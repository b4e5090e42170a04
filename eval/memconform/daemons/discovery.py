"""Resolves the SDK references of the command line to runners."""

import importlib
import sys
import tomllib
from pathlib import Path

from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import UsageError, nearest

USER_FILE = "memconform.toml"


def working_folder() -> Path:
    """The current folder; raises UsageError `no_working_folder` if it no longer exists."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError(
            "the working folder no longer exists",
            code="no_working_folder",
            hint="change to a folder that exists",
        ) from error


def known_sdks(folder: Path) -> dict[str, Path]:
    """Manifest paths by SDK name, from the checkout's `sdks/*/sdk.toml` and `memconform.toml`.

    Entries of `memconform.toml` in `folder` take precedence.

    Raises:
        UsageError: `config_invalid` if memconform.toml is invalid.
    """
    manifests = sorted(sdks_folder(folder).glob("*/sdk.toml"))
    return {path.parent.name: path for path in manifests} | _from_user_file(folder / USER_FILE)


def sdks_folder(folder: Path) -> Path:
    """`sdks/` of the checkout that contains `folder`, else of the one that contains this file."""
    folders = (folder.resolve(), *folder.resolve().parents, Path(__file__).parents[3])
    for candidate in folders:
        if any((candidate / "sdks").glob("*/sdk.toml")):
            return candidate / "sdks"
    return folder / "sdks"


def _from_user_file(path: Path) -> dict[str, Path]:
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise _bad_user_file(path, str(error)) from error
    sdks = table.get("sdks", {})
    unknown = sorted(table.keys() - {"sdks"})
    if unknown or not isinstance(sdks, dict) or not all(isinstance(v, str) for v in sdks.values()):
        raise _bad_user_file(
            path, f"unknown key {unknown[0]!r}" if unknown else "[sdks] is invalid"
        )
    return {name: path.parent / manifest for name, manifest in sdks.items()}


def _bad_user_file(path: Path, reason: str) -> UsageError:
    return UsageError(
        f"{path}: {reason}",
        code="config_invalid",
        hint='use a single table [sdks] with lines such as  mine = "path/to/sdk.toml"',
    )


def find_runner(reference: str, folder: Path) -> SdkRunner:
    """Return the runner for a known name, a path to an sdk.toml, `url:…` or `module:Class`.

    Raises:
        UsageError: if the reference resolves to no SDK, or its manifest or address is invalid.
    """
    if reference.startswith("url:"):
        return UrlRunner.of_reference(reference.removeprefix("url:"))
    path = _manifest_file(reference, folder)
    if path is not None:
        return _described(path)
    if ":" in reference:
        return _plugin(reference)
    raise _unknown(reference, folder)


def find_manifest(reference: str, folder: Path) -> Path:
    """Return the sdk.toml for a known name, or a path to one or to its folder.

    Raises:
        UsageError: `unknown_sdk` if the reference resolves to none.
    """
    path = _manifest_file(reference, folder)
    if path is None and ":" in reference:
        raise UsageError(
            f"--sdk {reference} has no sdk.toml, which names the driver of a client",
            code="unknown_sdk",
            hint="give the path of an sdk.toml with [client]; sdks/DRIVER.md describes it",
        )
    if path is None:
        raise _unknown(reference, folder)
    return path


def _manifest_file(reference: str, folder: Path) -> Path | None:
    if reference.startswith("url:"):
        return None  # Even if it ends with the file of a dialect.
    known = known_sdks(folder)
    if reference in known:
        return known[reference]
    path = Path(reference)
    if path.suffix == ".toml" or path.is_dir():
        return path / "sdk.toml" if path.is_dir() else path
    return None


def _unknown(reference: str, folder: Path) -> UsageError:
    if "/" in reference:
        return UsageError(
            f"--sdk {reference}: no such folder or sdk.toml",
            code="unknown_sdk",
            hint="check the path; it is relative to the working folder",
        )
    known = known_sdks(folder)
    names = ", ".join(known) or "none (the reference SDKs need a checkout of the project)"
    return UsageError(
        f"unknown SDK {reference!r}; known SDKs: {names}",
        code="unknown_sdk",
        hint=nearest(reference, known)
        or "--sdk takes a name, a path to sdk.toml, package.module:Class or url:http://…",
    )


def _described(path: Path) -> SdkRunner:
    """The runner of an sdk.toml, which says how a daemon starts, or where it already runs."""
    manifest, folder = load_manifest(path), path.parent.resolve()
    runner = (
        ManifestRunner(manifest, folder)
        if manifest.serve.url is None
        else UrlRunner.of_manifest(manifest, folder)
    )
    runner.manifest_file = path
    return runner


def _plugin(reference: str) -> SdkRunner:
    module, _, attribute = reference.partition(":")
    # Like `python -m`, find modules in the working folder without installation.
    sys.path.insert(0, str(working_folder()))
    try:
        runner = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--sdk {reference}: {error}",
            code="unknown_sdk",
            hint="the module must be importable and define that class",
        ) from error
    if not (isinstance(runner, type) and issubclass(runner, SdkRunner)):
        raise UsageError(
            f"--sdk {reference}: {attribute} is not a subclass of SdkRunner",
            code="unknown_sdk",
            hint="subclass memconform.daemons.sdk_runner.SdkRunner",
        )
    return runner()
