"""From what the user calls an SDK to the runner that serves it."""

import importlib
import sys
import tomllib
from pathlib import Path

from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.runner import SdkRunner
from memconform.daemons.url_runner import UrlRunner
from memconform.errors import UsageError, nearest

USER_FILE = "memconform.toml"


def working_folder() -> Path:
    """Raises UsageError where the folder that we run in is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise UsageError(
            "the working folder does not exist any more",
            code="no_working_folder",
            hint="cd to one that does",
        ) from error


def known_sdks(folder: Path) -> dict[str, Path]:
    """Manifests by name: the checkout's `sdks/*/sdk.toml`, then `memconform.toml` in `folder`.

    Raises:
        UsageError: where memconform.toml is not what it should be.
    """
    found = {path.parent.name: path for path in sorted(_sdks_folder(folder).glob("*/sdk.toml"))}
    return found | _from_user_file(folder / USER_FILE)


def _sdks_folder(folder: Path) -> Path:
    """`sdks/` of the checkout that `folder` lies in, else of the one that we run from."""
    here = [*folder.resolve().parents]
    for candidate in (folder.resolve(), *here, Path(__file__).parents[3]):
        if any((candidate / "sdks").glob("*/sdk.toml")):
            return candidate / "sdks"
    return folder / "sdks"


def _from_user_file(path: Path) -> dict[str, Path]:
    if not path.is_file():
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _bad_user_file(path, str(error)) from error
    sdks = table.get("sdks", {})
    unknown = sorted(table.keys() - {"sdks"})
    if unknown or not isinstance(sdks, dict) or not all(isinstance(v, str) for v in sdks.values()):
        raise _bad_user_file(path, f"unknown key {unknown[0]!r}" if unknown else "[sdks] is wrong")
    return {name: path.parent / manifest for name, manifest in sdks.items()}


def _bad_user_file(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path}: {why}",
        code="config_invalid",
        hint='it holds one table: [sdks] with lines like  mine = "path/to/sdk.toml"',
    )


def find_runner(reference: str, folder: Path) -> SdkRunner:
    """The runner for a known name, a path to an sdk.toml, `url:…` or `package.module:Class`.

    Raises:
        UsageError: where the reference names nothing that can be served.
    """
    if reference.startswith("url:"):
        return UrlRunner(reference.removeprefix("url:"))
    known = known_sdks(folder)
    if reference in known:
        return ManifestRunner(load_manifest(known[reference]), known[reference].parent.resolve())
    path = Path(reference)
    if path.suffix == ".toml" or path.is_dir():
        manifest = path / "sdk.toml" if path.is_dir() else path
        return ManifestRunner(load_manifest(manifest), manifest.parent.resolve())
    if ":" in reference:
        return _plugin(reference)
    names = ", ".join(known) or "none: the reference SDKs need a checkout of the project"
    raise UsageError(
        f"no SDK {reference!r}; known here: {names}",
        code="unknown_sdk",
        hint=nearest(reference, known)
        or "--sdk takes a name, a path to sdk.toml, package.module:Class or url:http://…",
    )


def _plugin(reference: str) -> SdkRunner:
    module, _, attribute = reference.partition(":")
    # As `python -m` does: a module of the working folder is found without being installed.
    sys.path.insert(0, str(working_folder()))
    try:
        runner = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--sdk {reference}: {error}",
            code="unknown_sdk",
            hint="the module must be importable, and hold that class",
        ) from error
    if not (isinstance(runner, type) and issubclass(runner, SdkRunner)):
        raise UsageError(
            f"--sdk {reference}: {attribute} is not a subclass of SdkRunner",
            code="unknown_sdk",
            hint="subclass memconform.daemons.runner.SdkRunner",
        )
    return runner()
