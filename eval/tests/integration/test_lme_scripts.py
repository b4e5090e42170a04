"""The scripts that replay LongMemEval, on a small dataset and without a network."""

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CALL_SECONDS, CHECKOUT
from tests.lme_data import write_dataset

_TRI = CHECKOUT / "scripts" / "run_tri_lme.sh"
_MODES = CHECKOUT / "scripts" / "run_lme_modes.sh"

Script = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def script(workspace: Path, environment: dict[str, str]) -> Script:
    """Calls a script on three questions, with a cheap daemon; variables are added."""
    write_dataset(workspace / "small.json")
    # The scripts call the program of the checkout, and need no other Python.
    assert (CHECKOUT / ".venv" / "bin" / "memconform").is_file(), "make setup"
    common = {
        "JB_LLM_PROVIDER": "fake",
        "MEMCONFORM_CACHE": str(workspace / "cache"),
        "DATASET": "small.json",
        "SAMPLE_SIZE": "3",
        "INGEST_MODE": "bulk",
        "RETRIEVAL_MODE": "bm25",
        "UPSTREAM": "own",
        "SDKS": "py",
        "SDK": "py",
        "PORT": "0",
        "OUTPUT_ROOT": "out",
    }

    def call(path: Path, *args: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [path, *args],
            cwd=workspace,
            env=environment | common | variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=CALL_SECONDS,
        )

    return call


def test_results_are_in_the_output_folder_and_an_earlier_brain_is_used_again(
    script: Script, workspace: Path
) -> None:
    home = {"JB_HOME": "home"}
    ended = script(_TRI, JUDGE_MODEL="", TOP_K="7", CANDIDATE_K="30", RERANK_TOP_N="9", **home)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("-> out\n")
    result = json.loads((workspace / "out" / "result-py.json").read_text())
    assert result["questions_run"] == 3
    assert result["settings"]["judge"] is None
    retrieval = result["settings"]["retrieval"]
    assert [retrieval[k] for k in ("mode", "top_k", "candidate_k", "rerank_top_n")] == [
        *("bm25", 7, 30, 9),
    ]
    [_] = (workspace / "home" / "brains").iterdir()
    again = script(_TRI, SKIP_EXTRACT="1", OUTPUT_ROOT="again", **home)
    assert again.returncode == 0, again.stderr
    result = json.loads((workspace / "again" / "result-py.json").read_text())
    assert result["settings"]["judge"] is not None
    assert result["settings"]["retrieval"]["top_k"] == 20


def test_the_modes_of_one_sdk_are_side_by_side(script: Script, workspace: Path) -> None:
    ended = script(_MODES)
    assert ended.returncode == 0, ended.stderr
    names = sorted(path.name for path in (workspace / "out").glob("result-*.json"))
    assert names == ["result-full-context.json", "result-oracle.json", "result-py.json"]


def test_a_taken_port_is_named(script: Script) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        ended = script(_TRI, PORT=port)
    assert ended.returncode == 3
    assert f"port_taken: port {port} is in use" in ended.stderr


@pytest.mark.parametrize(
    ("variables", "error"),
    [
        ({"SKIP_EXTRACT": "1"}, "no_brain: "),
        ({"SKIP_EXTRACT": "yes"}, "SKIP_EXTRACT=yes is refused: it is neither 0 nor 1"),
        ({"SAMPLE_SIZE": "few"}, "'--sample': 'few'"),
        ({"SAMPLE_SIZE": "4"}, "bad_selection: a sample of 4 cannot be drawn from 3 questions"),
        ({"MAX_COST": "-1"}, "'--max-cost-usd': -1.0"),
        ({"RETRIEVAL_MODE": "psychic"}, "'--mode': 'psychic'"),
        ({"UPSTREAM": "sideways"}, "'--upstream': 'sideways'"),
        ({"INGEST_MODE": "osmosis"}, "'--ingest-mode': 'osmosis'"),
        ({"CONCURRENCY": "0"}, "'--concurrency': 0"),
        ({"SDKS": "py missing"}, "unknown_sdk: "),
        ({"DATASET": "none.json"}, "dataset_missing: "),
        ({"SAMPLE_IDS_FILE": "none.txt"}, "ids_unreadable: "),
    ],
    ids=str,
)
def test_a_wrong_value_is_an_error(script: Script, variables: dict[str, str], error: str) -> None:
    ended = script(_TRI, **variables)
    assert ended.returncode == 2
    assert error in ended.stderr


def test_flags_take_precedence(script: Script) -> None:
    ended = script(_TRI, "--sample-size", "5")
    assert ended.returncode == 2
    assert "a sample of 5 cannot be drawn" in ended.stderr


def test_the_exit_code_is_the_programs(script: Script, workspace: Path) -> None:
    (workspace / "none.txt").touch()
    assert script(_TRI, SAMPLE_IDS_FILE="none.txt").returncode == 4


def test_without_a_dataset_the_fetched_one_is_taken(script: Script, workspace: Path) -> None:
    ended = script(_TRI, DATASET="", MEMCONFORM_DATA=str(workspace / "none"))
    assert ended.returncode == 2
    assert "memconform datasets fetch longmemeval_s_cleaned" in ended.stderr


@pytest.mark.parametrize("path", [_TRI, _MODES], ids=lambda path: path.name)
def test_help_lists_every_variable(script: Script, path: Path) -> None:
    ended = script(path, "-h")
    assert ended.returncode == 0
    listed = set(re.findall(r"^  ([A-Z][A-Z0-9_]*)\b", ended.stdout, re.MULTILINE))
    text = path.read_text() + (path.parent / "lme_flags.sh").read_text()
    refused = set(re.findall(r'^  "([A-Z][A-Z0-9_]*)\|', text, re.MULTILINE))
    assert listed == refused | set(re.findall(r"(?:\$\{|\bis_on )([A-Z][A-Z0-9_]*)", text))


def test_a_broken_script_fails_the_lint(tmp_path: Path) -> None:
    lines = (CHECKOUT / "Makefile").read_text().splitlines()
    [line] = [line for line in lines if "/shellcheck " in line]
    command = line.strip().replace("$(BIN)", str(CHECKOUT / ".venv" / "bin"))
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    shutil.copytree(CHECKOUT / ".ci", tmp_path / ".ci")

    def lint() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert lint().returncode == 0, lint().stdout
    for path in (tmp_path / "scripts" / _TRI.name, tmp_path / ".ci" / "run"):
        text = path.read_text()
        path.write_text(text + "rm -r $1/cache\n")
        assert "SC2086" in lint().stdout
        assert lint().returncode == 1
        path.write_text(text)
