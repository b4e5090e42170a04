"""The failures that a request can end with, as `application/problem+json`."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

STATUS = {
    "validation_error": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "payload_too_large": 413,
    "confirmation_required": 428,
    "internal_error": 500,
    "bad_gateway": 502,
    "timeout": 504,
}

CODES = {status: code for code, status in STATUS.items()}


@dataclass(eq=False)
class Problem(Exception):  # noqa: N818 - the name that problem+json gives it
    """A failure with its contract error code; `detail` is shown to the client."""

    code: str
    detail: str

    def body(self) -> dict[str, object]:
        title = self.code.replace("_", " ").capitalize()
        return {
            "status": STATUS[self.code],
            "title": title,
            "detail": self.detail,
            "code": self.code,
        }


def invalid(detail: str) -> Problem:
    return Problem("validation_error", detail)


@contextmanager
def problem_prefix(part: str) -> Iterator[None]:
    """Prefix the detail of a Problem with the part of the request that it concerns."""
    try:
        yield
    except Problem as problem:
        raise Problem(problem.code, f"{part}: {problem.detail}") from None
