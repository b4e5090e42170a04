"""A daemon whose files are elsewhere: conformant unless it claims `shared-state`."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Ended

_CASES = (
    "state-files", "state-restart", "state-full", "state-brain-removed", "state-embedder-changed",
    "recovery-put", "brain-description-empty", "ingest-durable", "state-killed-brain",
    "state-disk-full", "after-change",
)  # fmt: skip
_OF_FILES = {
    "state-files", "state-full", "state-brain-removed", "recovery-put", "after-change[stopped]",
}  # fmt: skip


def _conform(
    memconform: Callable[..., Ended], workspace: Path, cases: Sequence[str], *claims: str
) -> tuple[Ended, dict[str, dict[str, str]]]:
    """Run cases on a daemon that stores below another folder than `$JB_HOME`.

    Returns:
        How the command ended, and what each check found or its result, by case.
    """
    root = "{state_dir}/elsewhere"
    argv = ["{python}", "-m", "memoryd", "serve", "--addr", "{addr}", "--root", root]
    path = workspace / "sdk.toml"
    path.write_text(
        'name = "elsewhere"\nlanguage = "python"\n'
        f"[serve]\nargv = {json.dumps(argv)}\n"
        f'[env]\nset = {{ PYTHONPATH = "{CHECKOUT / "sdks" / "py" / "src"}", '
        'JB_EMBED_PROVIDER = "fake" }\n'
        f"[capabilities]\nprofiles = {json.dumps(['core', 'documents', *claims])}\n"
        'modes = ["auto", "bm25", "semantic", "hybrid"]\n'
    )
    selection = [part for case in cases for part in ("--case", case)]
    ended = memconform("conform", "--sdk", path, *selection, "--json", "c.json", timeout=300)
    [sdk] = json.loads((workspace / "c.json").read_text(encoding="utf-8"))["sdks"]
    results = {
        case["case"]: {c["id"]: " ".join(c["got"]) or c["result"] for c in case["checks"]}
        for case in sdk["cases"]
    }
    return ended, results


@pytest.mark.timeout(600)
def test_a_daemon_without_shared_state_is_not_held_to_files(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    ended, results = _conform(memconform, workspace, _CASES)
    assert ended.code == 0, ended.err
    skipped = {case for case, checks in results.items() if set(checks.values()) != {"pass"}}
    assert skipped == _OF_FILES
    for case in _OF_FILES:
        assert set(results[case].values()) == {"profile shared-state is not claimed"}


@pytest.mark.timeout(600)
def test_a_daemon_that_claims_shared_state_without_it_fails(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    ended, results = _conform(memconform, workspace, ["state-files"], "shared-state")
    assert ended.code == 1, ended.err
    assert "No such file" in results["state-files"]["state-files#text"]
