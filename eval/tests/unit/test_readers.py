"""Readers that an SDK does not claim, and cases that a choice of profiles leaves out."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memconform.cli.execute_conform import select_cases, unprofiled_not_run
from memconform.conformance.applicability import skip_reason
from memconform.conformance.catalog import catalog
from memconform.conformance.names import ROBUSTNESS
from memconform.conformance.results import CaseResult, Check, ConformReport, Result, SdkResult
from memconform.contract.names import LANGUAGE_MODELS, Mode, Profile, Reader
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.errors import UsageError
from memconform.reports.conformance import conform_banner, conform_notes
from memconform.reports.markdown import conformance_markdown

_TOML = """
name = "mine"
language = "cobol"
[serve]
argv = ["./serve", "{addr}"]
[capabilities]
profiles = ["core", "ask"]
modes = ["auto", "bm25", "semantic", "hybrid", "hybrid-rerank"]
"""


def _runner(folder: Path, more: str) -> ManifestRunner:
    path = folder / "sdk.toml"
    path.write_text(_TOML + more)
    return ManifestRunner(load_manifest(path), folder)


def _skipped(runner: ManifestRunner) -> dict[str, str]:
    reasons = {entry.id: skip_reason(entry, runner) for entry in catalog()}
    return {name: why for name, why in reasons.items() if why and why.startswith("reader")}


def test_a_daemon_with_the_fake_reader_only_gets_no_case_of_a_language_model(
    tmp_path: Path,
) -> None:
    skipped = _skipped(_runner(tmp_path, 'readers = ["fake"]'))
    assert skipped["ask-flush"] == "reader anthropic or ollama or openai is not claimed"
    assert skipped["upstream-chat-ollama"] == "reader ollama is not claimed"
    assert skipped["upstream-rerank-llm"] == "reader openai is not claimed"
    # These need an upstream, and any reader serves them.
    assert not skipped.keys() & {"mode-rerank-ask", "ask-embedder-fails", "rank-rerank"}
    assert not skipped.keys() & {"ask-reader-fake[basic]", "ask-order", "ask-without-reader"}


def test_a_daemon_that_claims_one_language_model_gets_its_cases(tmp_path: Path) -> None:
    skipped = _skipped(_runner(tmp_path, 'readers = ["openai"]'))
    assert skipped["ask-reader-fake[basic]"] == "reader fake is not claimed"
    assert skipped["upstream-chat-anthropic"] == "reader anthropic is not claimed"
    assert not skipped.keys() & {"ask-flush", "upstream-chat", "start-unclaimed-reader[fake]"}


@pytest.mark.parametrize("claim", ["", "readers = " + str([r.value for r in Reader])])
def test_a_daemon_that_claims_all_readers_gets_all_their_cases(tmp_path: Path, claim: str) -> None:
    skipped = _skipped(_runner(tmp_path, claim))
    assert set(skipped) == {f"start-unclaimed-reader[{reader.value}]" for reader in Reader}


def test_each_unclaimed_reader_has_a_case_that_looks_for_it(tmp_path: Path) -> None:
    skipped = _skipped(_runner(tmp_path, 'readers = ["fake"]'))
    assert skipped["start-unclaimed-reader[fake]"] == "reader fake is claimed"
    assert not skipped.keys() & {f"start-unclaimed-reader[{r.value}]" for r in LANGUAGE_MODELS}


def test_every_case_that_looks_at_a_chat_needs_a_language_model() -> None:
    """A new case with a scripted chat must not fail a daemon that has no language model."""
    chats = [
        entry
        for entry in catalog()
        if Profile.ASK in entry.needed_profiles
        and entry.case.upstream is not None
        and any(rule.kind == "chat" for rule in entry.case.upstream.rules)
    ]
    assert chats
    assert [entry.id for entry in chats if not entry.needed_readers] == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (
            'readers = ["fake"]\n[upstream.scripted]\nJB_LLM_PROVIDER = "openai"',
            "[upstream.scripted] JB_LLM_PROVIDER: 'openai' is not among [capabilities] readers",
        ),
        (
            'readers = ["openai"]\n[env]\nset = { JB_LLM_PROVIDER = "fake" }',
            "[env.set] JB_LLM_PROVIDER: 'fake' is not among [capabilities] readers",
        ),
        ('readers = ["telepathy"]', "[capabilities.readers] 0: 'telepathy' is not 'fake'"),
        ("readers = []", "[capabilities] readers"),
    ],
)
def test_a_claim_that_another_table_contradicts_is_refused(
    tmp_path: Path, more: str, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        _runner(tmp_path, more)
    assert caught.value.code == "manifest_invalid"
    assert says in caught.value.excerpt


def test_readers_need_the_profile_ask(tmp_path: Path) -> None:
    path = tmp_path / "sdk.toml"
    path.write_text(_TOML.replace(', "ask"', "") + 'readers = ["fake"]')
    with pytest.raises(UsageError) as caught:
        load_manifest(path)
    assert "readers: needs 'ask' in profiles" in caught.value.excerpt


def _report(sdk: SdkResult, unprofiled: list[str]) -> ConformReport:
    now = datetime.now(UTC)
    return ConformReport.model_construct(
        run="r", contract="1", started_at=now, finished_at=now, exit_code=0, skipped=[],
        harness_version="0", command=[], sdk_references={}, sdks=[sdk],
        unprofiled_not_run=unprofiled,
    )  # fmt: skip


def _sdk(readers: list[str] | None) -> SdkResult:
    check = Check(id="a#b", result=Result.PASS, level="must", rules=[])
    case = CaseResult(case="a", title="t", checks=[check])
    cases = ["ask-flush", "upstream-chat"] if readers else []
    return SdkResult(
        sdk="mine", profiles=["ask"], modes=[Mode.AUTO], cases=[case],
        readers=readers, unclaimed_reader_cases=cases,
    )  # fmt: skip


def test_a_verdict_names_the_readers_if_not_all_are_claimed() -> None:
    assert conform_banner(_sdk(["fake"])).endswith(": conformant with the reader fake only")
    assert conform_banner(_sdk(["openai", "ollama"])).endswith("the readers openai, ollama only")
    assert conform_banner(_sdk(None)).endswith(": conformant")


def test_a_report_says_which_cases_a_claim_skips() -> None:
    report = _report(_sdk(["fake"]), [])
    note = "mine claims the reader fake only: 2 case variants of other readers skipped, not passed"
    assert conform_notes(report) == [note]
    assert f"\n{note}.\n" in conformance_markdown(report)
    assert conform_notes(_report(_sdk(None), [])) == []


def test_a_report_says_that_a_profile_leaves_out_what_belongs_to_none() -> None:
    report = _report(_sdk(None), ["stop", "wire-json-answers"])
    note = "not run: 2 cases that belong to no profile; add --profile robustness"
    assert conform_notes(report) == [note]
    assert f"\n{note}.\n" in conformance_markdown(report)
    assert "1 case that belongs to no" in conform_notes(_report(_sdk(None), ["stop"]))[0]


def test_what_a_profile_leaves_out_and_what_it_runs_are_all_cases() -> None:
    cases = catalog()
    left_out = unprofiled_not_run(cases, ("core",), ())
    assert {"stop", "wire-json-answers", "upstream-chat"} <= set(left_out)
    run = {entry.base for entry in select_cases(cases, ("core",), ())}
    others = {e.base for e in cases if e.profile not in (None, Profile.CORE)}
    assert run | set(left_out) | others == {entry.base for entry in cases}
    assert not run & set(left_out)
    assert unprofiled_not_run(cases, (), ()) == []
    assert unprofiled_not_run(cases, ("core", ROBUSTNESS), ()) == []
    # With --case, only what the globs select counts.
    assert unprofiled_not_run(cases, ("core",), ("brain-*",)) == []
    assert unprofiled_not_run(cases, ("core",), ("stop",)) == ["stop"]
