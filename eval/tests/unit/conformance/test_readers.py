"""Providers that an SDK does not claim, and cases that a choice of profiles leaves out."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memconform.cli.conform.execution import select_cases, unprofiled_not_run
from memconform.conformance.applicability import skip_reason
from memconform.conformance.catalog import catalog
from memconform.conformance.names import ROBUSTNESS
from memconform.conformance.results import CaseResult, Check, ConformReport, Result, SdkResult
from memconform.contract.names import (
    LANGUAGE_MODELS,
    REMOTE_EMBEDDERS,
    Embedder,
    Mode,
    Profile,
    Reader,
)
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.errors import UsageError
from memconform.reports.conformance import conform_banner, conform_notes, conformance_markdown

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


def _skipped(runner: ManifestRunner, kind: str = "reader") -> dict[str, str]:
    reasons = {entry.id: skip_reason(entry, runner) for entry in catalog()}
    return {name: why for name, why in reasons.items() if why and why.startswith(kind)}


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


def test_a_daemon_with_the_fake_embedder_only_gets_no_case_of_a_service(tmp_path: Path) -> None:
    skipped = _skipped(_runner(tmp_path, 'embedders = ["fake"]'), "embedder")
    assert skipped["ingest-embedder-keeps-old"] == "embedder ollama or openai is not claimed"
    assert skipped["upstream-embeddings"] == "embedder openai is not claimed"
    assert "vector-fusion[v00-minmax]" in skipped
    # A reranker is scripted here, whatever embeds.
    assert not skipped.keys() & {"rank-rerank", "mode-rerank-ask", "upstream-rerank-llm"}
    assert not skipped.keys() & {"rank-semantic", "vector-hash[v00-memory-174]", "ask-flush"}


def test_a_daemon_with_a_remote_embedder_only_gets_no_case_of_fh256(tmp_path: Path) -> None:
    skipped = _skipped(_runner(tmp_path, 'embedders = ["openai"]'), "embedder")
    assert skipped["rank-semantic"] == "embedder fake is not claimed"
    assert not skipped.keys() & {"ingest-embedder-keeps-old", "upstream-embeddings"}


@pytest.mark.parametrize("claim", ["", "embedders = " + str([e.value for e in Embedder])])
def test_a_daemon_that_claims_all_embedders_gets_all_their_cases(
    tmp_path: Path, claim: str
) -> None:
    skipped = _skipped(_runner(tmp_path, claim), "embedder")
    assert set(skipped) == {f"start-unclaimed-embedder[{e.value}]" for e in Embedder}


def test_each_unclaimed_embedder_has_a_case_that_looks_for_it(tmp_path: Path) -> None:
    skipped = _skipped(_runner(tmp_path, 'embedders = ["fake"]'), "embedder")
    assert skipped["start-unclaimed-embedder[fake]"] == "embedder fake is claimed"
    remote = {f"start-unclaimed-embedder[{e.value}]" for e in REMOTE_EMBEDDERS}
    assert not skipped.keys() & remote


def test_a_daemon_that_calls_no_service_needs_no_upstream(tmp_path: Path) -> None:
    """It got 169 untestable checks and no verdict, although the documents said that it may."""
    runner = _runner(tmp_path, 'readers = ["fake"]\nembedders = ["fake"]')
    runner.modes = tuple(mode for mode in runner.modes or () if mode is not Mode.HYBRID_RERANK)
    left = [entry for entry in catalog() if skip_reason(entry, runner) is None]
    assert len(left) > 1_000
    assert [entry.id for entry in left if entry.case.daemon.upstream == "scripted"] == []
    assert {"vector-reader", "vector-reader-far", "vector-hash"} <= {entry.base for entry in left}


def test_every_case_that_scripts_embeddings_needs_an_embedder_that_is_a_service() -> None:
    scripted = [
        entry
        for entry in catalog()
        if entry.case.daemon.upstream == "scripted"
        and re.search(r"'kind': 'embeddings'", str(entry.case.model_dump()))
    ]
    assert scripted
    assert [entry.id for entry in scripted if not entry.needed_embedders] == []


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
        (
            'embedders = ["fake"]\n[upstream.scripted]\nJB_EMBED_PROVIDER = "openai"',
            "[upstream.scripted] JB_EMBED_PROVIDER: 'openai' is not among [capabilities] embedders",
        ),
        (
            'embedders = ["openai"]\n[env]\nset = { JB_EMBED_PROVIDER = "fake" }',
            "[env.set] JB_EMBED_PROVIDER: 'fake' is not among [capabilities] embedders",
        ),
        ("embedders = []", "[capabilities] embedders"),
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


def test_embedders_need_a_mode_that_compares_vectors(tmp_path: Path) -> None:
    path = tmp_path / "sdk.toml"
    modes = 'modes = ["auto", "bm25"]\n'
    path.write_text(re.sub("modes = .*\n", modes, _TOML) + 'embedders = ["fake"]')
    with pytest.raises(UsageError) as caught:
        load_manifest(path)
    assert "embedders: needs a mode that compares vectors" in caught.value.excerpt


def _report(sdk: SdkResult, unprofiled: list[str]) -> ConformReport:
    now = datetime.now(UTC)
    return ConformReport.model_construct(
        run="r", contract="1", started_at=now, finished_at=now, exit_code=0, skipped=[],
        harness_version="0", command=[], sdk_references={}, sdks=[sdk],
        unprofiled_not_run=unprofiled,
    )  # fmt: skip


def _sdk(readers: list[str] | None, embedders: list[str] | None = None) -> SdkResult:
    check = Check(id="a#b", result=Result.PASS, level="must", rules=[])
    case = CaseResult(case="a", title="t", checks=[check])
    cases = ["ask-flush", "upstream-chat"] if readers else []
    return SdkResult(
        sdk="mine", profiles=["ask"], modes=[Mode.AUTO], cases=[case],
        readers=readers, unclaimed_reader_cases=cases, embedders=embedders,
        unclaimed_embedder_cases=["rank-semantic"] if embedders else [],
    )  # fmt: skip


def test_a_report_says_which_cases_were_repeated() -> None:
    sdk = _sdk(None).model_copy(update={"repeated": ["a", "b"]})
    note = (
        "mine: 2 case variants ran again, alone, because they or the start of their daemon had"
        " timed out: a, b"
    )
    assert conform_notes(_report(sdk, [])) == [note]


def test_a_verdict_names_the_readers_if_not_all_are_claimed() -> None:
    assert conform_banner(_sdk(["fake"])).endswith(": conformant with the reader fake only")
    assert conform_banner(_sdk(["openai", "ollama"])).endswith("the readers openai, ollama only")
    assert conform_banner(_sdk(None)).endswith(": conformant")
    assert conform_banner(_sdk(None, ["fake"])).endswith("with the embedder fake only")
    both = conform_banner(_sdk(["fake"], ["openai", "ollama"]))
    assert both.endswith("with the reader fake and the embedders openai, ollama only")


def test_a_report_says_which_cases_a_claim_skips() -> None:
    report = _report(_sdk(["fake"]), [])
    note = "mine claims the reader fake only: 2 case variants of other readers skipped, not passed"
    assert conform_notes(report) == [note]
    assert f"\n{note}.\n" in conformance_markdown(report)
    assert conform_notes(_report(_sdk(None), [])) == []
    notes = conform_notes(_report(_sdk(None, ["fake"]), []))
    assert notes == [
        "mine claims the embedder fake only: 1 case variant of other embedders skipped, not passed"
    ]


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
