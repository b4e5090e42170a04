"""Each failure of `doctor` names a line of the sdk.toml, or a rule of the contract."""

from pathlib import Path

import pytest

from memconform.conformance.rules import rules
from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import SdkRunner
from memconform.runs import doctor_places
from memconform.runs.doctor_places import places

_MANIFEST = """\
name = "mine"
language = "cobol"
requires = ["cobc"]
[build]
command = ["cobc", "-x"]
inputs = ["*.cob"]
[serve]
argv = ["./serve", "{addr}"]
[ready]
path = "/up"
[capabilities]
profiles = ["core", "ask"]
modes = ["auto", "bm25"]
"""
_STEPS = (
    *("build", "start", "health", "version", "ingest", "search auto", "search hybrid-rerank"),
    *("ask", "ask augmented", "ingest batch", "list brains", "error response", "delete brain"),
    "stop",
)


@pytest.fixture
def runner(tmp_path: Path) -> SdkRunner:
    (tmp_path / "sdk.toml").write_text(_MANIFEST)
    return find_runner(str(tmp_path / "sdk.toml"), tmp_path)


def _short(runner: SdkRunner, step: str, code: str) -> list[str]:
    return [
        place.replace(f"{runner.manifest_file}", "sdk.toml") for place in places(step, code, runner)
    ]


@pytest.mark.parametrize(
    ("step", "code", "says"),
    [
        ("build", "toolchain_missing", ["sdk.toml:3 requires"]),
        ("build", "build_failed", ["sdk.toml:5 [build] command"]),
        ("build", "spawn_failed", ["sdk.toml:5 [build] command"]),
        ("build", "manifest_invalid", ["sdk.toml:6 [build] inputs"]),
        ("start", "spawn_failed", ["sdk.toml:8 [serve] argv"]),
        ("start", "daemon_exited", ["sdk.toml:8 [serve] argv"]),
        ("start", "daemon_not_ready", ["sdk.toml:8 [serve] argv", "sdk.toml:10 [ready] path"]),
        ("health", "http_500", ["rule core.health (sdks/CONTRACT.md)"]),
        (
            "search hybrid-rerank",
            "mode_not_served",
            ["sdk.toml:13 [capabilities] modes", "rule core.mode.served (sdks/CONTRACT.md)"],
        ),
        (
            "ask augmented",
            "bad_event",
            ["sdk.toml:12 [capabilities] profiles", "rule ask.order (sdks/CONTRACT.md)"],
        ),
        ("stop", "sigterm_ignored", ["rule robust.stop (sdks/CONTRACT.md)"]),
    ],
)
def test_a_failure_names_what_to_change(
    runner: SdkRunner, step: str, code: str, says: list[str]
) -> None:
    assert _short(runner, step, code) == says


@pytest.mark.parametrize("step", _STEPS)
def test_no_step_fails_without_a_place(runner: SdkRunner, step: str) -> None:
    assert places(step, "a_code_of_tomorrow", runner)


def test_every_rule_that_is_named_is_one_of_the_contract() -> None:
    named = {*doctor_places._RULES_OF_CODES.values(), *doctor_places._RULES_OF_STEPS.values()}
    assert named - set(rules()) == set()


def test_a_system_without_a_contract_breaks_no_rule_of_it(runner: SdkRunner) -> None:
    runner.has_contract = False
    assert _short(runner, "health", "http_500") == []
