"""A case that sets a variable which the daemon does not have says nothing about it."""

from typing import Any

import pytest
from pydantic import ValidationError

from memconform.conformance.applicability import dialect_skip_reason
from memconform.conformance.case import Case
from memconform.conformance.catalog import CaseVariant, catalog
from memconform.contract.dialect import Dialect
from memconform.daemons.dialects import load_dialect

_WITHOUT = Dialect.model_validate(
    {"settings": {"JB_UPSTREAM_TIMEOUT": False, "JB_LLM_PROVIDER=fake": False}}
)


def _entry(**case: Any) -> CaseVariant:
    step = {"http": "GET /healthz", "expect": {"ok": 200}}
    table = {"id": "c", "title": "t", "rules": ["core.health"], "steps": [step], **case}
    return CaseVariant("c", "c", Case.model_validate(table), {}, "x.yaml")


def _waits(expected: Any) -> CaseVariant:
    step = {"http": "POST ${brain_url}/search", "json": {}, "expect": {"late": expected}}
    return _entry(daemon={"upstream": "scripted"}, steps=[step])


@pytest.mark.parametrize(
    ("entry", "missing"),
    [
        (_entry(), ""),
        (_entry(daemon={"env": {"JB_UPSTREAM_TIMEOUT": "90"}}), "JB_UPSTREAM_TIMEOUT"),
        (_entry(daemon={"env": {"JB_REQUEST_TIMEOUT": "90"}}), ""),
        # An empty variable is one that is not set.
        (_entry(daemon={"env": {"JB_UPSTREAM_TIMEOUT": ""}}), ""),
        (_entry(daemon={"env": {"JB_LLM_PROVIDER": "fake"}}), "JB_LLM_PROVIDER"),
        (_entry(daemon={"env": {"JB_LLM_PROVIDER": "openai"}}), ""),
        (
            _entry(
                steps=[
                    {
                        "process": "fails_to_start",
                        "env": {"JB_UPSTREAM_TIMEOUT": "soon"},
                        "expect": {"ends": {"at": "/alive", "is": False}},
                    }
                ]
            ),
            "JB_UPSTREAM_TIMEOUT",
        ),
        # The harness sets the timeout of every scripted upstream; these cases wait for it.
        (_waits("timeout"), "JB_UPSTREAM_TIMEOUT"),
        (_waits({"any_of": ["bad_gateway", "timeout"]}), "JB_UPSTREAM_TIMEOUT"),
        (_waits({"event": "error", "at": "/0/code", "is": "timeout"}), "JB_UPSTREAM_TIMEOUT"),
        (_waits("bad_gateway"), ""),
        # A word of an answer and a number are no timeout.
        (_waits({"at": "/title", "is": "timeout"}), ""),
        (_waits({"at": "/size", "is": 1504}), ""),
    ],
)
def test_a_case_needs_the_variables_that_it_sets(entry: CaseVariant, missing: str) -> None:
    reason = dialect_skip_reason(entry, _WITHOUT) or ""
    assert reason.endswith(f"has no variable {missing}" if missing else "")
    assert bool(reason) is bool(missing)
    assert dialect_skip_reason(entry, Dialect()) is None


def test_a_silent_upstream_is_not_tested_without_a_timeout_to_set() -> None:
    """The sources of the public daemons have no such variable; ten checks of each said so."""
    dialect = Dialect.model_validate(load_dialect("jeffs-brain"))
    silent = [e for e in catalog() if e.id == "ask-upstream-fault[silent]"]
    assert len(silent) == 1
    reason = dialect_skip_reason(silent[0], dialect)
    assert reason == "the dialect 'jeffs-brain' has no variable JB_UPSTREAM_TIMEOUT"
    faulty = [e for e in catalog() if e.id == "ask-upstream-fault[cut]"]
    assert dialect_skip_reason(faulty[0], dialect) is None


def test_a_variable_that_is_renamed_needs_a_value() -> None:
    with pytest.raises(ValidationError, match="JB_AUTH_TOKEN = false"):
        Dialect.model_validate({"settings": {"JB_AUTH_TOKEN": "TOKEN"}})


def test_a_missing_variable_is_not_set() -> None:
    assert _WITHOUT.setting("JB_UPSTREAM_TIMEOUT", "90") is None
    assert _WITHOUT.setting("JB_LLM_PROVIDER", "fake") is None
    assert _WITHOUT.setting("JB_LLM_PROVIDER", "openai") == ("JB_LLM_PROVIDER", "openai")
