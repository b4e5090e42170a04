"""What an installed memconform is made of."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from memconform.conformance.mutation.mutant_table import TABLE
from tests.conftest import CHECKOUT


@pytest.mark.capability("packages")
def test_a_wheel_holds_the_package_its_datasets_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"memconform"}
    smoke = (CHECKOUT / "datasets" / "smoke.jsonl").read_bytes()
    assert zipfile.ZipFile(wheel).read("memconform/datasets/shipped/smoke.jsonl") == smoke
    assert "memconform/datasets/shipped/sources.toml" in names
    assert "memconform/datasets/shipped/errata/locomo.json" in names
    assert "memconform/daemons/guard.py" in names
    assert "memconform/conformance/mutation/source_patch/sitecustomize.py" in names
    assert not [name for name in names if "fakes" in name or "tests" in name]
    corpus = [name for name in names if name.startswith("memconform/datasets/shipped/lme/corpus/")]
    assert len(corpus) == 212


def test_an_installed_package_has_its_cases_and_the_contract(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
    )
    [wheel] = tmp_path.glob("*.whl")
    # Not importable from the wheel itself: resources and cases are files.
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    ended = subprocess.run(
        [sys.executable, "-m", "memconform.cli.main", "conform", "lint"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "installed"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "0 rules without a case" in ended.stdout) == (0, True), ended.stderr
    table = tmp_path / "installed" / "memconform" / "conformance" / "mutation" / "table"
    assert sorted(path.name for path in table.iterdir()) == sorted(
        path.name for path in TABLE.iterdir()
    )


def _pins(name: str) -> dict[str, str]:
    """What a lock file says of each package: its version and its hashes."""
    text = (CHECKOUT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    return {line.split("==")[0]: line for line in text.splitlines() if "==" in line}


def test_the_demo_and_the_tests_install_the_same_versions() -> None:
    core, dev = _pins("requirements.lock"), _pins("requirements-dev.lock")
    assert {"click", "httpx", "numpy", "pydantic", "hatchling"} <= core.keys()
    assert core.items() <= dev.items()
    # Whoever tries it for the first time waits for no tool of tests.
    assert not core.keys() & {"scipy", "mypy", "pytest", "ruff"}
