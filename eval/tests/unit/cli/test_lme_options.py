"""Flags of the replay that come from jeffs-brain/memory: their spellings, and what they select."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import click
import pytest

from memconform.cli.lme.checks import require_consistent
from memconform.cli.lme.command import run_command
from memconform.cli.lme.models import replay_models
from memconform.cli.lme.options import LmeOptions
from memconform.cli.lme.plan import read_data, retrieval_settings
from memconform.cli.lme.ports import port_of, require_ports
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import NothingSelectedError, UsageError
from memconform.llm.budget import Ledger
from memconform.llm.session import CallPolicy, LlmSession
from memconform.replay.placement import has_prefixes
from tests.lme_data import write_dataset

_DOCUMENTS = ("raw/lme/s1.md", "memory/project/lme/s1-001.md", "memory/global/s1.md")


def _options(*flags: str, dataset: str = "lme.json") -> LmeOptions:
    context = run_command.make_context("run", ["--dataset", dataset, *flags])
    return LmeOptions(**context.params, dry_run=False)


def _found(*flags: str) -> list[str]:
    """The documents that a search with these flags may find."""
    settings = retrieval_settings(_options(*flags))
    assert settings.scope in (None, "global", "project", "raw")
    filters = settings.model_dump(include={"path_prefix", "scope", "project"})
    return [path for path in _DOCUMENTS if has_prefixes(path, **filters)]


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("", _DOCUMENTS),
        ("--actor-scope=", _DOCUMENTS),
        ("--actor-scope= --actor-project= --actor-path-prefix=", _DOCUMENTS),
        ("--actor-scope memory", _DOCUMENTS[1:]),
        ("--actor-scope memory --actor-path-prefix memory/project/", _DOCUMENTS[1:2]),
        ("--actor-scope memory --actor-path-prefix mem", _DOCUMENTS[1:]),
        ("--actor-scope memory --actor-project lme", _DOCUMENTS[1:2]),
        ("--actor-scope project_memory", _DOCUMENTS[1:2]),
        ("--actor-scope global_memory", _DOCUMENTS[2:]),
        ("--actor-scope raw_lme", _DOCUMENTS[:1]),
        ("--actor-scope raw_lme --actor-path-prefix raw/lme/", _DOCUMENTS[:1]),
        ("--actor-scope raw", _DOCUMENTS[:1]),
    ],
)
def test_a_scope_of_jeffs_brain_searches_its_folders(flags: str, found: tuple[str, ...]) -> None:
    assert _found(*flags.split()) == list(found)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--actor-scope wiki", "--actor-scope wiki excludes all documents"),
        ("--actor-scope sources", "excludes all documents"),
        ("--actor-scope raw_document", "excludes all documents"),
        ("--actor-scope memory --actor-path-prefix raw/", "exclude all documents"),
        ("--no-reader --ingest-mode agentic", "--no-reader and --ingest-mode agentic"),
        ("--no-reader --actor-endpoint-style full", "--no-reader and --actor-endpoint-style full"),
        ("--max-iterations 4", "--max-iterations limits the agent"),
        ("--question-timeout 30s", "--question-timeout limits the agent"),
        ("--max-iterations 1 --ingest-mode agentic", "leaves no search"),
        ("--contextualise --ingest-mode bulk", "bulk extracts none"),
        ("--actor-scope memory --ingest-mode agentic", "of which"),
    ],
)
def test_a_flag_without_an_effect_is_refused(flags: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_consistent(_options(*flags.split()))
    assert says in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("flag", ["--reader", "--actor"])
def test_the_model_that_answers_is_the_reader_as_in_score(
    flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`lme` calls it the actor, as jeffs-brain/memory does, and `score` the reader."""
    monkeypatch.setenv("JB_LME_ACTOR_MODEL", "gpt-4o")
    assert str(replay_models(_options(flag, "openai:gpt-5")).reader) == "openai:gpt-5"
    [option] = [param for param in run_command.params if flag in param.opts]
    record = option.get_help_record(click.Context(run_command))
    assert record is not None
    assert record[0] == "--reader MODEL"


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "--no-reader --ingest-mode bulk",
        "--max-iterations 2 --question-timeout 1m --ingest-mode agentic",
        "--contextualise --ingest-mode agentic",
        "--actor-scope memory --actor-path-prefix memory/project/lme/",
    ],
)
def test_flags_that_go_together_are_accepted(flags: str) -> None:
    require_consistent(_options(*flags.split()))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("0", 0), ("90", 90), ("1.5", 1.5), ("90s", 90), ("1m30s", 90), ("500ms", 0.5), ("1h", 3600)],
)
def test_durations_are_those_of_go_or_seconds(value: str, seconds: float) -> None:
    assert _options("--judge-timeout", value).judge_timeout == pytest.approx(seconds)


@pytest.mark.parametrize("value", ["", "soon", "90x", "1m30", "-5", "-5s", "nan", "inf", "25h"])
def test_other_durations_are_refused(value: str) -> None:
    with pytest.raises(click.BadParameter):
        _options("--judge-timeout", value)


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        ((), "auto"),
        (("--actor-filter-question-sessions",), "on"),
        (("--actor-filter-question-sessions=true",), "on"),
        (("--actor-filter-question-sessions=1",), "on"),
        (("--actor-filter-question-sessions", "0"), "off"),
        (("--actor-filter-question-sessions=False",), "off"),
        (("--actor-filter-question-sessions", "auto"), "auto"),
    ],
)
def test_the_filter_by_sessions_understands_flags_of_go(flags: tuple[str, ...], value: str) -> None:
    assert _options(*flags).actor_filter_question_sessions == value


def test_another_truth_value_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="'yes' is not one of"):
        _options("--actor-filter-question-sessions=yes")


def test_ports_belong_to_sdks() -> None:
    options = _options("--port", "100", "--sdk-port", "py=18852")
    go, py = (cast("SdkRunner", SimpleNamespace(name=name)) for name in ("go", "py"))
    assert [port_of(options, go, 0), port_of(options, py, 1)] == [100, 18852]
    assert port_of(_options(), go, 3) == 0
    require_ports(options, ["go", "py"])
    with pytest.raises(UsageError, match="py is not among the SDKs"):
        require_ports(options, ["go", "ts"])
    for text in ("py", "py=", "py=0", "py=65536", "=1", "py=x"):
        with pytest.raises(UsageError, match="names no port"):
            require_ports(_options("--sdk-port", text), ["py"])


def _asked(folder: Path, *flags: str) -> list[str]:
    names = write_dataset(folder / "lme.json", questions=5)
    assert names == [f"q000{n}" for n in range(5)]
    data = read_data(_options(*flags, dataset=str(folder / "lme.json")))
    return [question.id for question in data.questions]


def test_the_sampler_decides_who_is_asked_and_in_which_order(tmp_path: Path) -> None:
    everyone = [f"q000{n}" for n in range(5)]
    assert _asked(tmp_path) == _asked(tmp_path, "--sample-size", "0") == everyone
    ours = _asked(tmp_path, "--sample-size", "4")
    assert ours == sorted(ours)
    # `lme.Dataset.Sample(4, 42)` of jeffs-brain/memory 22a586e: one a category, by its name.
    theirs = _asked(tmp_path, "--sample-size", "4", "--sampler", "jeffs-brain")
    assert theirs == ["q0003", "q0001", "q0004", "q0000"]


def test_categories_are_those_of_the_sample(tmp_path: Path) -> None:
    flags = ("--categories", "multi-session, temporal-reasoning")
    assert _asked(tmp_path, *flags) == ["q0001", "q0002"]
    drawn = set(_asked(tmp_path, "--sample-size", "3"))
    both = _asked(tmp_path, "--sample-size", "3", "--categories", "multi-session,knowledge-update")
    assert both == sorted(drawn & {"q0001", "q0003"})
    ids = tmp_path / "ids.txt"
    ids.write_text("q0002\nq0000\n")
    assert _asked(tmp_path, "--sample-ids-file", str(ids), *flags) == ["q0002"]
    with pytest.raises(UsageError) as caught:
        _asked(tmp_path, "--categories", "multi")
    assert caught.value.code == "unknown_category"
    with pytest.raises(NothingSelectedError):
        _asked(tmp_path, "--sample-ids-file", str(ids), "--categories", "multi-session")


def test_reader_and_judges_have_caches_and_limits_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    flags = ("--actor", "gpt-4o", "--judge", "gpt-4o", "--judge-timeout", "2m")
    folders = ("--reader-cache-dir", str(tmp_path / "r"), "--judge-cache-dir", str(tmp_path / "j"))
    models = replay_models(_options(*flags, *folders))
    policy = CallPolicy(deadline_s=30)  # short limit: nobody is asked
    session = LlmSession(Ledger(None), policy=policy, env={"OPENAI_API_KEY": "k"})
    reader, [judge] = models.open_reader(session), models.open_judges(session)
    assert (reader.deadline_s, judge.deadline_s) == (30, 120)
    assert len({id(cache) for cache in (reader.cache, judge.cache, session.cache)}) == 3
    plain = replay_models(_options("--actor", "gpt-4o", "--judge", "gpt-4o", "--no-reader"))
    [judge] = plain.open_judges(session)
    assert judge.cache is session.cache
    assert judge.deadline_s == 30
    assert plain.needed(extracts=False) == list(plain.judges)
