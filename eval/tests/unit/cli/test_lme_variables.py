"""The variables of jeffs-brain's scripts: each reaches the command, or is refused by name."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from memconform.cli.lme.command import run_command, tri_command

_SCRIPTS = Path(__file__).parents[4] / "scripts"
_CHECKOUT = os.environ.get("JEFFS_BRAIN")

# Variable, a value, and what the command gets for it; of eval/scripts of jeffs-brain/memory
# 22a586e.
_BOTH: dict[str, tuple[str, str]] = {
    "EXPECTED_SHA": ("0badc0de", "--expected-sha 0badc0de"),
    "SAMPLE_SIZE": ("7", "--sample-size 7"),
    "SEED": ("9", "--seed 9"),
    "SAMPLE_IDS_FILE": ("ids.txt", "--sample-ids-file ids.txt"),
    "BRAIN_ID": ("b", "--actor-brain b"),
    "JB_HOME": ("home", "--brain-cache home/brains"),
    "SKIP_EXTRACT": ("true", "--skip-extract"),
    "EXTRACT_CACHE_DIR": ("xc", "--brain-cache xc"),
    "CONCURRENCY": ("3", "--concurrency 3"),
    "REPLAY_CONCURRENCY": ("4", "--replay-concurrency 4"),
    "EXTRACT_MODEL": ("gpt-5", "--extract-model gpt-5"),
    "ACTOR_MODEL": ("gpt-4o", "--actor gpt-4o"),
    "JUDGE_MODEL": ("gpt-4o", "--judge gpt-4o"),
    "CONTEXTUALISE": ("1", "--contextualise"),
    "CONTEXTUALISE_CACHE_DIR": ("cc", "--contextualise-cache-dir cc"),
    "TOP_K": ("5", "--actor-topk 5"),
    "RETRIEVAL_MODE": ("bm25", "--retrieval-mode bm25"),
    "CANDIDATE_K": ("7", "--actor-candidatek 7"),
    "RERANK_TOP_N": ("8", "--actor-rerank-topn 8"),
    "RERANK_PROVIDER": ("llm", "--env JB_RERANK_PROVIDER=llm"),
    "RERANK_MODEL": ("rr", "--env JB_RERANK_MODEL=rr"),
    "JB_RERANK_URL": ("http://h/r", "--env JB_RERANK_URL=http://h/r"),
    "ACTOR_SCOPE": ("memory", "--actor-scope memory"),
    "ACTOR_PROJECT": ("eval-lme", "--actor-project eval-lme"),
    "ACTOR_PATH_PREFIX": ("raw/lme/", "--actor-path-prefix raw/lme/"),
    "ACTOR_FILTER_QUESTION_SESSIONS": ("0", "--actor-filter-question-sessions 0"),
    "MAX_COST": ("3", "--max-cost-usd 3"),
    "OUTPUT_ROOT": ("out", "--output out"),
    "READER_CACHE_DIR": ("rc", "--reader-cache-dir rc"),
    "JUDGE_CACHE_DIR": ("jc", "--judge-cache-dir jc"),
    "TS_PORT": ("1001", "--sdk-port ts=1001"),
    "GO_PORT": ("1002", "--sdk-port go=1002"),
    "PY_PORT": ("1003", "--sdk-port py=1003"),
}
_TRI = _BOTH | {"DATASET": ("d.json", "--dataset d.json")}
_MODES = _BOTH | {
    "S_DATASET": ("s.json", "--dataset s.json"),
    "S_DATASET_SHA256": ("0badc0de", "--expected-sha 0badc0de"),
    "SHARED_JB_HOME": ("shared", "--brain-cache shared/brains"),
    "RESULTS_DIR": ("res", "--output res/lme-modes-"),
    "RUN_VERBATIM_RETRIEVAL": ("1", "--actor-scope raw_lme --actor-path-prefix raw/lme/"),
}
_REFUSED = {
    "REUSE_EXTRACT_CACHE": "0",
    "SAVE_EXTRACT_CACHE": "false",
    "REPLAY_EXTRACTION_PIPELINE_VERSION": "2",
    "JB_EXTRACT_HEURISTICS": "on",
    "WARMUP_SECONDS": "90",
    "VECTOR_READY_TIMEOUT_SECONDS": "600",
    "MEMORY_GO": "/bin/memory",
    "JB_LLM_API_KEY": "k",
    "JB_LLM_BASE_URL": "http://h",
    "JB_RERANK_API_KEY": "k",
}
_REFUSED_BY_MODES = _REFUSED | {
    "ROOT_DIR": "/r",
    "MEMORY_DIR": "/m",
    "GO_SDK_DIR": "/g",
    "ORACLE_DATASET": "o.json",
    "ORACLE_URL": "http://h/o.json",
    "ORACLE_SHA256": "0",
}
_READ_BY_THE_PROGRAM = {
    "JB_LLM_PROVIDER",
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
    "OLLAMA_HOST",
}
"""By memconform, for its own models and, with UPSTREAM=real, the daemons'."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The scripts, beside a program that prints its arguments."""
    shutil.copytree(_SCRIPTS, tmp_path / "scripts")
    program = tmp_path / ".venv" / "bin" / "memconform"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s " "$@"\necho\n')
    program.chmod(0o755)
    return tmp_path


def _call(
    checkout: Path, script: str, variables: Mapping[str, str], flags: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / script, *flags],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("script", "name", "value", "expected"),
    [
        (script, name, *row)
        for script, rows in (("run_tri_lme.sh", _TRI), ("run_lme_modes.sh", _MODES))
        for name, row in rows.items()
    ],
)
def test_a_variable_reaches_the_command(
    checkout: Path, script: str, name: str, value: str, expected: str
) -> None:
    ended = _call(checkout, script, {name: value})
    assert ended.returncode == 0, ended.stderr
    assert f" {expected}" in ended.stdout
    assert f" {expected}" not in _call(checkout, script, {}).stdout
    for flag in re.findall(r"(?<= )--[a-z-]+", ended.stdout):
        command = run_command if script == "run_lme_modes.sh" else tri_command
        assert flag in {each for option in command.params for each in option.opts}


@pytest.mark.parametrize(
    ("script", "name", "value"),
    [
        *(("run_tri_lme.sh", name, value) for name, value in _REFUSED.items()),
        *(("run_lme_modes.sh", name, value) for name, value in _REFUSED_BY_MODES.items()),
        ("run_tri_lme.sh", "RUN_VERBATIM_RETRIEVAL", "1"),
        ("run_tri_lme.sh", "S_DATASET", "s.json"),
        ("run_tri_lme.sh", "CONTEXTUALISE", "perhaps"),
        ("run_lme_modes.sh", "RUN_VERBATIM_RETRIEVAL", "perhaps"),
    ],
)
def test_a_variable_without_an_effect_is_refused_by_name(
    checkout: Path, script: str, name: str, value: str
) -> None:
    ended = _call(checkout, script, {name: value})
    assert (ended.returncode, ended.stdout) == (2, "")
    shown = "…" if name.endswith("_KEY") else value
    assert ended.stderr.startswith(f"{name}={shown} is refused: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REUSE_EXTRACT_CACHE", "1"),
        ("SAVE_EXTRACT_CACHE", "true"),
        ("WARMUP_SECONDS", "0"),
        ("JB_EXTRACT_HEURISTICS", "fallback"),
        ("JB_EXTRACT_HEURISTICS", "off"),
        ("CONTEXTUALISE", "0"),
        ("SKIP_EXTRACT", "false"),
        ("ACTOR_SCOPE", ""),
    ],
)
def test_a_variable_that_asks_for_what_happens_anyway_is_accepted(
    checkout: Path, name: str, value: str
) -> None:
    ended = _call(checkout, "run_tri_lme.sh", {name: value})
    assert (ended.returncode, ended.stdout) == (0, _call(checkout, "run_tri_lme.sh", {}).stdout)


def test_a_key_of_the_reranker_is_for_real_services(checkout: Path) -> None:
    ended = _call(checkout, "run_tri_lme.sh", {"JB_RERANK_API_KEY": "k", "UPSTREAM": "real"})
    assert ended.returncode == 0
    assert " k " not in ended.stdout


def test_verbatim_retrieval_is_a_second_command(checkout: Path) -> None:
    variables = {"RUN_VERBATIM_RETRIEVAL": "1", "OUTPUT_ROOT": "out", "ACTOR_PROJECT": "p"}
    # short limit: the command is printed, not run.
    ended = _call(checkout, "run_lme_modes.sh", variables, ["--timeout", "5"])
    first, second = ended.stdout.splitlines()
    assert first.endswith("--benchmark-mode oracle,full-context,real-retrieval --timeout 5 ")
    assert second.endswith(
        "--actor-scope raw_lme --actor-path-prefix raw/lme/ --actor-project  --timeout 5"
        " --output out/verbatim-retrieval "
    )
    assert "--benchmark-mode" not in second


@pytest.mark.skipif(_CHECKOUT is None, reason="JEFFS_BRAIN names no checkout of jeffs-brain/memory")
@pytest.mark.parametrize(
    ("script", "known"),
    [
        ("run_tri_lme.sh", {*_TRI, *_REFUSED}),
        ("run_lme_modes.sh", {*_MODES, *_REFUSED_BY_MODES}),
    ],
)
def test_no_variable_of_its_scripts_is_missing_here(script: str, known: set[str]) -> None:
    text = (Path(_CHECKOUT or "") / "eval" / "scripts" / script).read_text()
    own = set(re.findall(r"\$\{([A-Z][A-Z0-9_]*):?[-+]", text))
    own -= set(re.findall(r"^(?:export )?((?:TS_JB|EXPECTED_CACHE)\w+)=", text, re.MULTILINE))
    assert own <= known | _READ_BY_THE_PROGRAM
