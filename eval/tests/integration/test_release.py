"""What a release holds besides the package: packed daemons, and an image."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon_archives import pack, packed_manifest
from memconform.daemons.manifest import Manifest, load_manifest
from tests.conftest import CHECKOUT, SDKS


@pytest.fixture(scope="session")
def installed_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a wheel installs it, outside the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, check=True, capture_output=True)
    [wheel] = folder.glob("*.whl")
    shutil.unpack_archive(wheel, folder / "installed", "zip")
    return folder / "installed"


def _programs(folder: Path, *names: str) -> str:
    """A PATH that holds only these programs and this interpreter."""
    folder.mkdir()
    for name in names:
        (folder / name).symlink_to(shutil.which(name) or name)
    # The interpreter itself: the virtual environment has packages that the daemon must not need.
    python = Path(sys.executable).resolve()
    (folder / f"python3.{sys.version_info.minor}").symlink_to(python)
    return str(folder)


def test_a_packed_daemon_runs_without_its_toolchain(
    sdk: str, environment: dict[str, str], installed_wheel: Path, workspace: Path
) -> None:
    script = [sys.executable, str(CHECKOUT / "scripts" / "daemon_archives.py"), sdk]
    subprocess.run([*script, "--output", str(workspace)], env=environment, check=True)
    [archive] = workspace.glob(f"memconform-daemon-{sdk}-*.tar.gz")
    shutil.unpack_archive(archive, workspace, filter="data")
    archive.unlink()
    run = ["run", "--sdk", "all", "--no-skip", "--data", "smoke", "--scorer", "exact"]
    ended = subprocess.run(
        [sys.executable, "-m", "memconform.cli.main", *run, "--seed-reference-brain"],
        cwd=workspace,
        env={
            "PYTHONPATH": str(installed_wheel),
            "HOME": str(workspace),
            "PATH": _programs(workspace / "bin", "sh", *(["node"] if sdk == "ts" else [])),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"{sdk}: 20/20 pass_rate=1.0000")


def _settings(manifest: Manifest) -> dict[str, object]:
    return manifest.model_dump(exclude={"build", "requires", "serve"})


@pytest.mark.parametrize("sdk", SDKS)
def test_a_packed_manifest_differs_only_in_how_the_daemon_is_built_and_started(
    sdk: str, tmp_path: Path
) -> None:
    path = CHECKOUT / "sdks" / sdk / "sdk.toml"
    packed = tmp_path / "sdk.toml"
    packed.write_text(packed_manifest(path.read_text(encoding="utf-8"), sdk), encoding="utf-8")
    original, manifest = load_manifest(path), load_manifest(packed)
    assert _settings(manifest) == _settings(original)
    assert manifest.build is None
    assert not [part for part in manifest.serve.argv if "{build_dir}" in part]
    assert manifest.serve.argv[-5:] == original.serve.argv[-5:]


def test_an_archive_depends_only_on_names_and_contents(tmp_path: Path) -> None:
    archives = []
    for number, names in enumerate((["a.js", "b.js"], ["b.js", "a.js"])):
        build = tmp_path / str(number)
        for name in names:
            path = build / "dist" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
            os.utime(path, (number, number))
        (build / "node_modules" / "typescript").mkdir(parents=True)
        (build / "node_modules" / "typescript" / "tsc.js").write_text("what only a build needs")
        archives.append(pack("ts", build, build))
    first, second = (archive.read_bytes() for archive in archives)
    assert first == second
    with tarfile.open(archives[0]) as packed:
        entries = packed.getmembers()
    assert [entry.name for entry in entries] == [
        f"sdks/ts/{name}" for name in ("LICENSE", "dist/a.js", "dist/b.js", "sdk.toml")
    ]
    assert {(entry.mtime, entry.uid, entry.gid, entry.uname) for entry in entries} == {
        (0, 0, 0, "")
    }


_ROOTED = re.compile(r"(?<![\w./-])/(archives|opt|sdks|src|work)\b")
"""Folders of the image, which are folders of a scratch root here."""
Ignore = Callable[[Any, list[str]], set[str]]
_IGNORED: Ignore = shutil.ignore_patterns("node_modules", "__pycache__")
_AS_ROOT = ("ln -s ../lib/node_modules", "useradd ")
"""Instructions that would change this machine."""


def _instructions() -> list[tuple[str, str]]:
    text = (CHECKOUT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.split()[0], line.partition(" ")[2]) for line in lines]


def _copy(sources: list[Path], target: Path, ignore: Ignore | None = None) -> None:
    """Copy as COPY does: files into a folder, and the contents of folders."""
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True, ignore=ignore)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


@pytest.mark.slow
def test_each_instruction_of_the_image_does_its_work_in_a_scratch_root(
    environment: dict[str, str], workspace: Path
) -> None:
    """Without a container engine: tools of the base images are those of this machine."""
    root = workspace / "root"
    (root / "work").mkdir(parents=True)
    python = _programs(workspace / "bin")
    (workspace / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    env = environment | {"PATH": f"{python}{os.pathsep}{os.environ['PATH']}"}
    env.pop("PYTHONPATH")  # it would hide the installed package
    let_in = set((CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines())
    folder = root

    def run(*command: str) -> str:
        return subprocess.run(
            command, cwd=folder, env=env, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    for name, text in _instructions():
        arguments = _ROOTED.sub(rf"{root}/\1", text)
        match name:
            case "WORKDIR":
                folder = Path(arguments)
                folder.mkdir(exist_ok=True)
            case "ENV":
                for word in arguments.split():
                    variable, _, value = word.partition("=")
                    env[variable] = value.replace("$PATH", env["PATH"])
            case "COPY" if arguments.startswith("--from=build"):
                _, source, target = arguments.split()
                if source != target:
                    _copy([Path(source)], Path(target))
            case "COPY" if not arguments.startswith("--from"):
                *sources, target = arguments.split()
                assert {f"!{source}" for source in sources} <= let_in
                _copy([CHECKOUT / source for source in sources], folder / target, _IGNORED)
            case "RUN" if not text.startswith(_AS_ROOT):
                run("sh", "-c", arguments)
            case "ENTRYPOINT":
                asked = ["--data", "smoke", "--scorer", "exact", "--seed-reference-brain"]
                printed = run(*json.loads(arguments), "run", "--sdk", "all", "--no-skip", *asked)
                assert printed.count("20/20 pass_rate=1.0000") == len(SDKS)
