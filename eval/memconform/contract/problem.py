"""Errors on the wire: `application/problem+json`."""

from memconform.contract.wire import Response

MEDIA_TYPE = "application/problem+json"


class Problem(Response):
    status: int
    title: str
    detail: str
    code: str
