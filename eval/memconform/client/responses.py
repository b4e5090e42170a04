"""Checks of a response before its content is read: status, media type and size."""

import httpx
from pydantic import ValidationError

from memconform.client.failures import BODY_LIMIT, ContractViolatedError, DaemonFailedError
from memconform.contract.problem import MEDIA_TYPE as PROBLEM_MEDIA_TYPE
from memconform.contract.problem import Problem


class SizeLimit:
    """Rejects a body that exceeds a limit, before it fills the memory."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0

    def count(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            raise ContractViolatedError("too_large", f"the answer exceeds {self._limit} bytes")


async def require_status(response: httpx.Response, status: int) -> None:
    if response.status_code == status:
        return
    content = await response.aread()
    where = f"{response.request.method} {response.request.url.path}"
    reason = _problem_detail(response, content)
    if response.is_success or response.is_redirect:
        raise ContractViolatedError(
            "unexpected_status",
            f"{where}: got status {response.status_code}, the contract requires {status}",
            body=excerpt(content),
        )
    raise DaemonFailedError(
        f"http_{response.status_code}",
        f"{where}: {response.status_code} {reason}".rstrip(),
        body=excerpt(content),
    )


def _problem_detail(response: httpx.Response, content: bytes) -> str:
    """Code and detail of a problem+json body; empty for any other body."""
    if _media_type(response) != PROBLEM_MEDIA_TYPE:
        return ""
    try:
        problem = Problem.model_validate_json(content)
    except ValidationError:
        return ""
    return f"{problem.code}: {problem.detail}"


def require_media_type(response: httpx.Response, expected: str) -> None:
    actual = _media_type(response)
    if actual != expected:
        raise ContractViolatedError(
            "bad_media_type", f"Content-Type is {actual!r}, expected {expected!r}"
        )


def _media_type(response: httpx.Response) -> str:
    header: str = response.headers.get("content-type", "")
    return header.partition(";")[0].strip().lower()


def excerpt(content: bytes) -> str:
    return content[: 4 * BODY_LIMIT].decode("utf-8", "replace")[:BODY_LIMIT]
