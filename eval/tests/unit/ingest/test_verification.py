"""What a verification of an index means that the daemon does not answer."""

from types import SimpleNamespace
from typing import Any

import pytest

from memconform.client.failures import CallError, CallTimeoutError, DaemonFailedError
from memconform.contract.core import Brain
from memconform.errors import DaemonError
from memconform.ingest import verification
from memconform.ingest.verification import (
    IndexChangedError,
    IndexUnansweredError,
    IndexVerifier,
)


def _verifier(*answers: CallError | Brain) -> IndexVerifier:
    """Of a daemon that answers so, in turn."""
    left = list(answers)

    async def brain(_: str) -> Brain:
        answer = left.pop(0)
        if isinstance(answer, CallError):
            raise answer
        return answer

    client: Any = SimpleNamespace(brain=brain)
    daemon: Any = SimpleNamespace(base_url="http://127.0.0.1:1")
    return IndexVerifier(client, daemon, _COUNTS, None)


_COUNTS = Brain(brain_id="b", documents=3, chunks=3, vectors=0, pending=0)
_SLOW = CallTimeoutError("timeout", "no answer in time")
_REFUSED = DaemonFailedError("http_500", "the database is damaged")
_MISSING = DaemonFailedError("http_404", "no such brain")
_GONE = DaemonFailedError("unreachable", "connection refused")


@pytest.mark.parametrize(
    ("answers", "kind", "code", "says"),
    [
        ([_SLOW] * 3, IndexUnansweredError, "brain_changed", "could not be verified: timeout"),
        ([_REFUSED] * 3, IndexUnansweredError, "brain_changed", "could not be verified: http_500"),
        ([_GONE] * 3, IndexUnansweredError, "daemon_gone", "nothing listens"),
        # That it has no such brain is an answer.
        ([_MISSING], IndexChangedError, "brain_changed", "changed during the run: http_404"),
        (
            [_SLOW, _COUNTS.model_copy(update={"documents": 2})],
            IndexChangedError,
            "brain_changed",
            "changed during the run",
        ),
    ],
)
async def test_only_an_answer_says_that_an_index_has_changed(
    monkeypatch: pytest.MonkeyPatch,
    answers: list[CallError | Brain],
    kind: type[DaemonError],
    code: str,
    says: str,
) -> None:
    """Three timeouts of a verification took all that had been verified before."""
    monkeypatch.setattr(verification, "_RETRY_SECONDS", 0)
    with pytest.raises(kind, match=says) as caught:
        await _verifier(*answers).verify()
    assert caught.value.code == code


async def test_an_answer_after_failures_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_RETRY_SECONDS", 0)
    assert await _verifier(_SLOW, _REFUSED, _COUNTS).verify() is False
