"""How a call to a daemon fails; whatever is none of these is an answer."""


class CallError(Exception):
    """A call that brought no usable answer.

    `code` is stable; `body` keeps what the daemon did send, as text, cut to `BODY_LIMIT`.
    """

    def __init__(self, code: str, message: str, *, body: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.body = body


BODY_LIMIT = 4_096
"""Characters of an unusable answer that are kept: enough for a problem+json or an HTML title."""


class DaemonFailedError(CallError):
    """The daemon refused, broke the connection, or answered with an error."""


class ContractViolatedError(CallError):
    """The daemon answered, but not what the contract allows."""


class CallTimeoutError(CallError):
    """The daemon did not answer within one of the time limits."""
