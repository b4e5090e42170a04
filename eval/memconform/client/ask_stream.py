"""The order of an `ask` stream: retrieve, answer_delta, citation, done."""

from dataclasses import dataclass, field
from enum import IntEnum

from pydantic import ValidationError

from memconform.client.failures import ContractViolatedError, DaemonFailedError
from memconform.client.messages import read_message
from memconform.contract.ask import (
    EVENTS,
    AnswerDelta,
    AskRequest,
    Citation,
    Done,
    Retrieve,
    StreamError,
    StreamEvent,
)
from memconform.contract.core import ranking_fault, ranks_all, trace_fault
from memconform.contract.dialect import Dialect, rerank_skips
from memconform.contract.dialect_keys import DialectError
from memconform.contract.reported_failure import failure_in
from memconform.contract.strict_json import RepeatedKeyError
from memconform.contract.text import is_visible
from memconform.contract.wire import RankBy
from memconform.validation_faults import first_fault

_SHOWN_CHARACTERS = 200
"""How much is quoted of an error event that violates the contract's schema."""


class _Stage(IntEnum):
    START = 0
    ANSWER = 1
    CITATIONS = 2
    FAILED = 3
    DONE = 4


@dataclass(frozen=True, slots=True)
class AskResult:
    """A stream that ended with `done {ok: true}`."""

    retrieve: Retrieve
    text: str
    citations: tuple[Citation, ...]
    done: Done


@dataclass(slots=True)
class AskStream:
    """The state machine of one stream: consumes its events in order and yields its answer.

    `feed` and `finish` raise ContractViolatedError on the first event that the contract does not
    allow in its place; `finish` raises DaemonFailedError if the daemon itself reported an error.
    """

    request: AskRequest
    whole_brain: bool = True
    """Whether the brain has documents: a mode that ranks all of them must then return chunks."""
    dialect: Dialect | None = None
    """How the daemon's events differ from the contract's."""
    rank_by: RankBy = "score"
    _stage: _Stage = _Stage.START
    _retrieve: Retrieve | None = None
    _deltas: list[str] = field(default_factory=list)
    _citations: list[Citation] = field(default_factory=list)
    _error: StreamError | None = None
    _done: Done | None = None
    _unknown: list[str] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self._stage is _Stage.DONE

    @property
    def has_delta(self) -> bool:
        """Whether a piece of the answer has been received."""
        return bool(self._deltas)

    def feed(self, name: str, data: str) -> None:
        if self.is_done:
            raise _violation("event_after_done", f"{name!r} came after done")
        dialect = self.dialect
        model = EVENTS.get(name if dialect is None else dialect.event_names.get(name, ""))
        if model is None:
            if dialect is not None and name not in dialect.ignored_events:
                # It may be an error, after which the answer ends as if nothing had happened.
                raise _violation("unknown_event", f"{name!r} is no event of the dialect")
            self._require_no_failure(name, data)
            self._unknown.append(name)
            return
        try:
            event = read_message(data.encode("utf-8", "surrogatepass"), model, dialect)
        except RepeatedKeyError as error:
            raise ContractViolatedError("duplicate_key", f"{name}: {error}", body=data) from error
        except (ValidationError, DialectError) as error:
            if isinstance(error, DialectError) and error.code == "reported_error":
                raise DaemonFailedError(
                    "reported_error", f"{name}: {error.message}", body=data
                ) from error
            fault = first_fault(error) if isinstance(error, ValidationError) else error.message
            if model is StreamError:
                # Why the daemon failed matters more than the shape in which it says so.
                fault = f"{fault}; the daemon reports {data.strip()[:_SHOWN_CHARACTERS]}"
            raise ContractViolatedError(
                "bad_event", f"{name}: {fault}", body=data, model=model
            ) from error
        self._take(event)

    def _require_no_failure(self, name: str, data: str) -> None:
        """Raise DaemonFailedError if an event that means nothing reports an error."""
        if self.dialect is None:
            failure = failure_in(data.encode("utf-8", "surrogatepass"), None)
        else:
            failure = self.dialect.failure_in(data)
        if failure is not None:
            raise DaemonFailedError(
                "reported_error", f"{name}: the answer reports a failure: {failure}", body=data
            )

    def _take(self, event: StreamEvent) -> None:
        match event:
            case Retrieve():
                self._take_retrieve(event)
            case AnswerDelta():
                self._expect("answer_delta", (_Stage.ANSWER,))
                self._deltas.append(event.text)
            case Citation():
                self._expect("citation", (_Stage.ANSWER, _Stage.CITATIONS))
                self._take_citation(event)
            case StreamError():
                self._expect("error", (_Stage.START, _Stage.ANSWER, _Stage.CITATIONS))
                self._error = event
                self._stage = _Stage.FAILED
            case Done():
                self._expect("done", (_Stage.ANSWER, _Stage.CITATIONS, _Stage.FAILED))
                self._take_done(event)

    def _expect(self, name: str, stages: tuple[_Stage, ...]) -> None:
        if self._stage not in stages:
            place = {
                _Stage.START: "before retrieve",
                _Stage.ANSWER: "after retrieve",
                _Stage.CITATIONS: "after citation",
                _Stage.FAILED: "after error",
            }[self._stage]
            raise _violation("event_order", f"{name} came {place}")

    def _take_retrieve(self, event: Retrieve) -> None:
        self._expect("retrieve", (_Stage.START,))
        if event.top_k not in (None, self.request.top_k):
            raise _violation(
                "bad_trace", f"retrieve: topK {event.top_k}, requested {self.request.top_k}"
            )
        served = event.trace.effective_mode
        if event.mode and served and event.mode is not served:
            raise _violation(
                "bad_trace",
                f"retrieve: mode {event.mode.value}, but trace.effectiveMode is {served.value}",
            )
        fault = trace_fault(event.trace, self.request.mode, rerank_skips(self.dialect))
        if fault is not None:
            raise _violation("bad_trace", f"retrieve: {fault}")
        everything = self.whole_brain and ranks_all(event.trace, self.request.question)
        fault = ranking_fault(
            event.chunks, self.request.top_k, ranks_all=everything, rank_by=self.rank_by
        )
        if fault is not None:
            raise _violation("bad_ranking", f"retrieve: {fault}")
        self._retrieve = event
        self._stage = _Stage.ANSWER

    def _take_citation(self, event: Citation) -> None:
        chunks = self._retrieve.chunks if self._retrieve else []
        cited = next((chunk for chunk in chunks if chunk.chunk_id == event.chunk_id), None)
        if cited is None:
            raise _violation("bad_citation", f"{event.chunk_id} was not retrieved")
        if cited.path != event.path:
            raise _violation(
                "bad_citation", f"{event.chunk_id}: path {event.path}, retrieved from {cited.path}"
            )
        self._citations.append(event)
        self._stage = _Stage.CITATIONS

    def _take_done(self, event: Done) -> None:
        if event.ok and self._error is not None:
            raise _violation("ok_after_error", "done {ok: true} came after an error event")
        if not event.ok and self._error is None:
            raise _violation("failed_without_error", "done {ok: false} came without an error event")
        text = "".join(self._deltas)
        if event.ok and event.answer is not None and event.answer != text:
            raise _violation(
                "answer_mismatch", "done.answer differs from the concatenated answer_delta texts"
            )
        self._done = event
        self._stage = _Stage.DONE

    def finish(self) -> AskResult:
        """Return the answer after the stream has ended."""
        if self._error is not None:
            raise DaemonFailedError(
                "reader_failed",
                f"the daemon reported {self._error.code or 'an error'}: {self._error.message}",
            )
        if self._done is None or self._retrieve is None:
            last = ["nothing", "retrieve", "citation"][self._stage]
            raise _violation("stream_ended_early", f"the stream ended after {last}, without done")
        if not is_visible("".join(self._deltas)):
            unknown = ", ".join(dict.fromkeys(self._unknown))
            raise _violation(
                "no_answer",
                "done {ok: true} came without a visible answer"
                + (f"; unknown events: {unknown}" if unknown else ""),
            )
        return AskResult(self._retrieve, "".join(self._deltas), tuple(self._citations), self._done)


def _violation(code: str, message: str) -> ContractViolatedError:
    return ContractViolatedError(code, message)
