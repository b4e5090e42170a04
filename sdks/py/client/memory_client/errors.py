"""Why a call failed."""

from typing import Literal

Kind = Literal["http", "daemon", "cut", "timeout", "protocol", "connection"]


class CallError(Exception):
    """A call failed.

    `kind` says how: the daemon answered with a status other than 2xx (`http`), or said in its
    stream that the answer failed (`daemon`); the response broke off (`cut`); a limit passed
    (`timeout`); what came is no response of the contract (`protocol`); there was no response
    (`connection`). `code` is that of the daemon's problem or `error`.
    """

    def __init__(
        self, kind: Kind, message: str, *, status: int | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.code = code
