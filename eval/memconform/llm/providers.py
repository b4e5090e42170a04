"""What the models of one provider share: a limit, and whether calling goes on."""

import re
from dataclasses import dataclass, field

from memconform.llm.chat import (
    ChatRequest,
    HaltingError,
    InvalidRepliesError,
    LlmError,
    ServiceDownError,
    TransientError,
)
from memconform.llm.limiter import Limiter
from memconform.llm.names import ModelName
from memconform.llm.parameters import AcceptedParameters
from memconform.llm.replies import InvalidReplyError
from memconform.printing.logs import Logger

_log = Logger()

_MOST_FAILURES = 5
"""Calls in a row that failed to the end: the service is down, and the rest need not wait for it."""
_MOST_EQUAL_FAULTS = 5
"""Replies with one fault, before a first valid one: a setting does not suit the model."""
_MOST_EQUAL_FAULTS_LATER = 20
"""The same after a valid one. A judge that fails three questions of ten has five such in a row
about once in 600 questions, and twenty never."""


@dataclass(slots=True)
class _Prompt:
    """The replies of a model to requests with one wording."""

    is_known: bool = False
    """Whether a reply was valid yet."""
    fault: str = ""
    """Of the last reply; empty if it was valid."""
    times: int = 0
    """Replies in a row that had this fault."""


@dataclass(slots=True)
class Provider:
    """What the models of one provider share."""

    limiter: Limiter
    accepted: AcceptedParameters = field(default_factory=AcceptedParameters)
    failures: int = 0
    """Calls in a row that failed to the end."""
    reached: bool = False
    """Whether a call succeeded yet."""
    _halted: dict[tuple[str, str], HaltingError] = field(default_factory=dict)
    """Why no further call is made, by model and wording; an empty wording stands for all."""
    _prompts: dict[tuple[str, str], _Prompt] = field(default_factory=dict)
    _notices: dict[tuple[str, str], int] = field(default_factory=dict)
    """Replies about which there is a notice, by model and notice."""

    def require_usable(self, name: ModelName, request: ChatRequest) -> None:
        """Raise what ended an earlier call, if that concerns this one: nothing more is sent."""
        for wording in ("", request.prompt_version):
            error = self._halted.get((name.model, wording))
            if error is not None:
                raise type(error)(error.message, code=error.code, hint=error.hint) from error

    def halt(self, name: ModelName, error: HaltingError, wording: str = "") -> HaltingError:
        """Make no further call to a model, or none with this wording."""
        self._halted[name.model, wording] = error
        return error

    def succeeded(self) -> None:
        """Note that a call returned a completion."""
        self.limiter.succeeded()
        self.failures = 0
        self.reached = True

    def unreachable(self, name: ModelName, error: TransientError) -> HaltingError:
        """The error of a service to which no connection was ever made."""
        return self.halt(
            name,
            ServiceDownError(
                f"{name} cannot be reached: {error.message}",
                code="llm_unreachable",
                hint=error.hint
                or "check the address that the provider's variable holds, and the network",
            ),
        )

    def give_up(self, name: ModelName, error: TransientError, deadline_s: float) -> LlmError:
        """The error of a call that failed until its deadline."""
        self.failures += 1
        message = f"{error.message}, until the deadline of {deadline_s:g} s"
        if self.failures >= _MOST_FAILURES:
            down = ServiceDownError(
                f"{self.failures} calls in a row failed: {message}",
                code="llm_down",
                hint="try again later; what was paid for is kept (run, judge: --resume RUN)",
            )
            return self.halt(name, down)
        return LlmError(message, code=error.code)

    def accept(self, name: ModelName, request: ChatRequest) -> None:
        """Note a valid reply."""
        prompt = self._prompts.setdefault((name.model, request.prompt_version), _Prompt())
        prompt.is_known, prompt.fault, prompt.times = True, "", 0

    def reject(
        self, name: ModelName, request: ChatRequest, error: InvalidReplyError, fault: str
    ) -> LlmError:
        """The error of a reply that is invalid; one that halts, if the last ones were alike.

        What a model refuses, or a filter stops, depends on the question and halts nothing.
        """
        if fault.startswith(("the model refused", "it ended by")):
            return error
        prompt = self._prompts.setdefault((name.model, request.prompt_version), _Prompt())
        kind = _kind(fault)
        prompt.times = prompt.times + 1 if kind == prompt.fault else 1
        prompt.fault = kind
        most = _MOST_EQUAL_FAULTS_LATER if prompt.is_known else _MOST_EQUAL_FAULTS
        if prompt.times != most:
            # Later ones were in flight.
            return error
        halting = InvalidRepliesError(
            f"{prompt.times} replies in a row have the same fault: {error.message}",
            code="llm_invalid_replies",
            hint=f'use another model, or change what [models."{name}"] of a price file says'
            " (--prices, docs/JUDGES.md): min_output_tokens for replies that are cut or empty,"
            " json_schema for prose; then continue (run, judge: --resume RUN)",
        )
        return self.halt(name, halting, request.prompt_version)

    def notice(self, name: ModelName, event: str) -> None:
        """Report a peculiarity of a model's replies once, and count it."""
        key = str(name), event
        self._notices[key] = self._notices.get(key, 0) + 1
        if self._notices[key] == 1:
            _log.warning(event, model=str(name))

    def notice_repair(self, name: ModelName, fault: str) -> None:
        """Report that replies are valid only when they are asked for again, which is paid twice."""
        self.notice(name, f"replies are asked for twice: {_kind(fault)}")

    def summarize(self) -> None:
        """Report how many replies there was a notice about, where there were several."""
        for (model, event), count in self._notices.items():
            if count > 1:
                _log.warning(event, model=model, replies=count)


def _kind(fault: str) -> str:
    """What faults of several replies have in common; figures and quotations differ."""
    return re.sub(r"\d+", "N", fault.partition(": ")[0])
