"""Wire type of errors: `application/problem+json` (RFC 9457)."""

from pydantic import Field

from memconform.contract.wire import Response

MEDIA_TYPE = "application/problem+json"

STATUS: dict[str, int] = {
    "validation_error": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "conflict": 409,
    "payload_too_large": 413,
    "confirmation_required": 428,
    "rate_limited": 429,
    "internal_error": 500,
    "bad_gateway": 502,
    "timeout": 504,
}
"""HTTP status of each error code."""


class Problem(Response):
    """The body of an error response."""

    status: int = Field(ge=400, le=599)
    title: str
    detail: str
    code: str = Field(json_schema_extra={"enum": list(STATUS)})
