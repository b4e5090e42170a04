"""Daemons whose sdk.toml has no [upstream]: which checks they get, and what the report says."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]

_ARGV = ["{python}", "-m", "memoryd", "serve", "--addr", "{addr}", "--root", "{state_dir}"]


def _sdk(workspace: Path, claims: str, argv: Sequence[str] = _ARGV) -> Path:
    path = workspace / "sdk.toml"
    path.write_text(
        'name = "quiet"\nlanguage = "python"\n'
        f"[serve]\nargv = {json.dumps(argv)}\n"
        '[env]\nset = { JB_LLM_PROVIDER = "fake", JB_EMBED_PROVIDER = "fake",'
        f' PYTHONPATH = "{CHECKOUT / "sdks" / "py" / "src"}" }}\n'
        '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25", "semantic"]\n'
        + claims
    )
    return path


def _checks(workspace: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    report = json.loads((workspace / "c.json").read_text(encoding="utf-8"))
    [sdk] = report["sdks"]
    return sdk, {check["id"]: check for case in sdk["cases"] for check in case["checks"]}


_REFUSAL = (
    'case $JB_EMBED_PROVIDER in openai|ollama) echo "unknown embedder" >&2; exit 2;; esac;'
    ' exec "$0" "$@"'
)


@pytest.mark.parametrize("refuses", [True, False])
def test_a_daemon_cannot_hide_an_embedder(
    memconform: Call, workspace: Path, *, refuses: bool
) -> None:
    argv = ["sh", "-c", _REFUSAL, *_ARGV] if refuses else _ARGV
    sdk = _sdk(workspace, 'readers = ["fake"]\nembedders = ["fake"]\n', argv)
    cases = [
        argument
        for case in ("start-unclaimed-embedder*", "vector-reader*", "vector-hash*",
                     "ingest-embedder-fails*", "ask-embedder-fails")
        for argument in ("--case", case)
    ]  # fmt: skip
    ended = memconform("conform", "--sdk", sdk, *cases, "--json", "c.json")
    report, checks = _checks(workspace)
    assert "untestable" not in {check["result"] for check in checks.values()}, ended.err
    assert checks["ask-embedder-fails#refused"]["result"] == "not_applicable"
    assert checks["vector-reader-far[v00]#cited"]["result"] == "pass"
    assert checks["start-unclaimed-embedder[fake]#does-not-start"]["result"] == "not_applicable"
    for embedder in ("openai", "ollama"):
        check = checks[f"start-unclaimed-embedder[{embedder}]#does-not-start"]
        assert check["result"] == ("pass" if refuses else "fail"), ended.err
    assert ended.code == (0 if refuses else 1)
    assert report["embedders"] == ["fake"]
    assert len(report["unclaimed_embedder_cases"]) == 13
    assert "quiet claims the embedder fake only: 13 case variants of other" in ended.err


def test_an_untestable_check_does_not_stop_a_run_at_its_first_failure(
    memconform: Call, workspace: Path
) -> None:
    """`-x` stopped at the first untestable check, which shows nothing."""
    sdk = _sdk(workspace, "")
    cases = ("--case", "ask-flush", "--case", "health*", "--case", "brain-create*")
    ended = memconform("conform", "--sdk", sdk, *cases, "-x", "-j", "1", "--json", "c.json")
    _, checks = _checks(workspace)
    assert checks["ask-flush#early"]["result"] == "untestable", ended.err
    others = {c["result"] for name, c in checks.items() if not name.startswith("ask-flush")}
    assert others == {"pass"}
    assert ended.code == 3


@pytest.mark.parametrize(
    ("claims", "proposed", "made"),
    [
        ("", ["readers", "embedders"], []),
        ('readers = ["fake"]\n', ["embedders"], ["readers"]),
        ('embedders = ["fake"]\n', ["readers"], ["embedders"]),
        ('readers = ["fake", "openai"]\nembedders = ["fake", "openai"]\n', [],
         ["readers", "embedders"]),
    ],
)  # fmt: skip
def test_the_hint_proposes_no_claim_that_is_made(
    memconform: Call, workspace: Path, claims: str, proposed: list[str], made: list[str]
) -> None:
    cases = ("--case", "ask-flush", "--case", "ask-embedder-fails")
    memconform("conform", "--sdk", _sdk(workspace, claims), *cases, "--json", "c.json")
    _, checks = _checks(workspace)
    hints = [check["got"][0] for check in checks.values() if check["result"] == "untestable"]
    assert hints
    for hint in hints:
        assert "add [upstream.scripted] to the sdk.toml" in hint
        assert all(f'{claim} = ["fake"]' in hint for claim in proposed)
        assert not any(f'{claim} = ["fake"]' in hint for claim in made)


def test_a_daemon_that_ignores_sigterm_is_named_with_the_case(
    memconform: Call, scripted: Scripted
) -> None:
    """`process ignores SIGTERM pid=…` said neither of which SDK nor after which case."""
    sdk = scripted("ignores_sigterm")
    ended = memconform("conform", "--sdk", sdk, "--case", "health")
    [line] = [line for line in ended.err.splitlines() if "process ignores SIGTERM" in line]
    assert "sdk=scripted" in line
    assert "last_case=health" in line
