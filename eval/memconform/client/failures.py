"""The ways in which a call to a daemon fails; anything else is an answer."""

from pydantic import BaseModel


class CallError(Exception):
    """A call yielded no usable answer.

    `code` is stable; `body` holds what the daemon sent, as text, cut to `BODY_LIMIT`; `model` is
    what it should have been, if it has the wrong shape.
    """

    def __init__(
        self, code: str, message: str, *, body: str = "", model: type[BaseModel] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.body = body
        self.model = model


BODY_LIMIT = 4_096
"""Characters kept of an unusable answer: enough for a problem+json or an HTML title."""


class DaemonFailedError(CallError):
    """The daemon refused the request, broke the connection, or reported an error."""


class ContractViolatedError(CallError):
    """The daemon answered in a way that the contract does not allow."""


class CallTimeoutError(CallError):
    """The daemon exceeded one of the time limits in `Timeouts`."""
