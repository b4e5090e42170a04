"""A reader that sdk.toml does not claim: its cases are skipped, and a daemon cannot hide it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Ended

_REFUSAL = (
    'case $JB_LLM_PROVIDER in openai|anthropic|ollama) echo "unknown reader" >&2; exit 2;; esac;'
    ' exec "$0" "$@"'
)
_CASES = ("--case", "start-unclaimed-reader*", "--case", "ask-reader-fake*", "--case", "ask-flush")


@pytest.mark.parametrize("refuses", [True, False])
def test_a_daemon_cannot_hide_a_reader(
    memconform: Callable[..., Ended], workspace: Path, *, refuses: bool
) -> None:
    argv = ["{python}", "-m", "memoryd", "serve", "--addr", "{addr}", "--root", "{state_dir}"]
    path = workspace / "sdk.toml"
    path.write_text(
        'name = "quiet"\nlanguage = "python"\n'
        f"[serve]\nargv = {json.dumps(['sh', '-c', _REFUSAL, *argv] if refuses else argv)}\n"
        f'[env]\nset = {{ PYTHONPATH = "{CHECKOUT / "sdks" / "py" / "src"}" }}\n'
        '[capabilities]\nprofiles = ["core", "ask"]\nmodes = ["auto", "bm25"]\n'
        'readers = ["fake"]\n'
    )
    ended = memconform("conform", "--sdk", path, *_CASES, "--json", "c.json")
    report = json.loads((workspace / "c.json").read_text(encoding="utf-8"))
    [sdk] = report["sdks"]
    results = {c["id"]: c["result"] for case in sdk["cases"] for c in case["checks"]}
    assert sdk["readers"] == ["fake"]
    assert sdk["unclaimed_reader_cases"] == ["ask-flush"]
    assert results["ask-flush#early"] == "not_applicable"
    assert results["ask-reader-fake[basic]#answer"] == "pass"
    assert results["start-unclaimed-reader[fake]#does-not-start"] == "not_applicable"
    for reader in ("openai", "anthropic", "ollama"):
        check = f"start-unclaimed-reader[{reader}]#does-not-start"
        assert results[check] == ("pass" if refuses else "fail"), ended.err
    assert ended.code == (0 if refuses else 1)
    assert "quiet claims the reader fake only: 1 case variant of other readers" in ended.err
