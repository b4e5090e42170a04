"""A change to the program that an SDK serves changes its build hash, even without a build."""

import os
from pathlib import Path

import pytest

from memconform.daemons.build import build_hash
from memconform.daemons.manifest import Build, Capabilities, Manifest, Serve
from memconform.daemons.program_files import program_identity
from memconform.errors import UsageError


def _hash(folder: Path, *argv: str) -> str:
    capabilities = Capabilities.model_validate({"profiles": ["core"], "modes": ["bm25"]})
    serve = Serve(argv=list(argv))
    return build_hash(
        Manifest(name="mine", language="any", serve=serve, capabilities=capabilities), folder
    )


@pytest.mark.parametrize(
    ("argv", "file"),
    [
        (("{python}", "memory.py"), "memory.py"),
        (("./bin/memory", "serve"), "bin/memory"),
        (("node", "--import=./hook.mjs", "main.mjs"), "hook.mjs"),
        (("node", "--import=./hook.mjs", "main.mjs"), "main.mjs"),
        (("node", "--import", "./hook.mjs", "main.mjs"), "main.mjs"),
        (("{python}", "-u", "memory.py", "--db", "memory.db"), "memory.py"),
        (("venv/bin/sh", "memory.sh"), "memory.sh"),
        (("sh", "-c", 'exec "$0" "$@"', "{python}", "memory.py"), "memory.py"),
        (("{python}", "-m", "memory"), "memory.py"),
        (("{python}", "-m", "memory"), "memory/store.py"),
        (("{python}", "-m", "memory.server"), "memory/store.py"),
    ],
)
def test_a_change_to_a_served_file_changes_the_hash(
    tmp_path: Path, argv: tuple[str, ...], file: str
) -> None:
    """The hash once covered only the manifest, and a resume continued with another program."""
    for name in ("hook.mjs", "main.mjs", "venv/bin/sh", "memory.db"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    if path.parent != tmp_path:
        (path.parent / "__init__.py").touch()
    path.write_text("one")
    before = _hash(tmp_path, *argv)
    assert _hash(tmp_path, *argv) == before
    path.write_text("two")
    assert _hash(tmp_path, *argv) != before


@pytest.mark.parametrize(
    "argv",
    [
        ("{python}", "-u", "memory.py", "--db", "memory.db"),
        ("./memory.py", "memory.db"),
        ("{python}", "-m", "memory", "--db=memory.db"),
        ("{build_dir}/memory", "memory.db"),
        ("node", "{build_dir}/main.mjs", "memory.db"),
    ],
)
def test_files_that_the_program_may_write_are_ignored(
    tmp_path: Path, argv: tuple[str, ...]
) -> None:
    (tmp_path / "memory.py").touch()
    data = tmp_path / "memory.db"
    data.write_text("one")
    before = _hash(tmp_path, *argv)
    data.write_text("two")
    assert _hash(tmp_path, *argv) == before


@pytest.mark.parametrize("name", ["tool", "{bin}/tool"])
def test_a_program_on_path_is_identified_by_path_size_and_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tool = tmp_path / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=os.pathsep)
    name = name.replace("{bin}", str(tool.parent))
    [before] = program_identity([name], tmp_path / "elsewhere")
    assert before.startswith(f"{tool} 9 ")
    os.utime(tool, (1, 1))
    assert list(program_identity([name], tmp_path / "elsewhere")) != [before]


def test_arguments_that_name_no_file_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "{state_dir}").touch()
    script = "touch x; exec sleep 1000" * 1000
    argv = ["{python}", "-c", script, "{state_dir}", "--addr", "{addr}", "-m", "no.such", "-", "="]
    assert list(program_identity(argv, tmp_path)) == []


def test_a_change_to_sources_elsewhere_changes_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another checkout was measured by the program that was built from the first one."""
    build = Build(command=["true"], inputs=["${CHECKOUT}/go/**/*.go"])
    manifest = Manifest(
        name="mine",
        language="any",
        build=build,
        serve=Serve(argv=["true"]),
        capabilities=Capabilities.model_validate({"profiles": ["core"], "modes": ["bm25"]}),
    )
    source = tmp_path / "checkout" / "go" / "main.go"
    source.parent.mkdir(parents=True)
    source.write_text("package one")
    monkeypatch.setenv("CHECKOUT", str(tmp_path / "checkout"))
    first = build_hash(manifest, tmp_path)
    source.write_text("package two")
    assert build_hash(manifest, tmp_path) != first
    for value, says in (
        (str(tmp_path / "nowhere"), "matches no file"),
        ("", "CHECKOUT is not set"),
    ):
        monkeypatch.setenv("CHECKOUT", value)
        with pytest.raises(UsageError, match=says):
            build_hash(manifest, tmp_path)
