"""JSON and problem responses."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from memoryd.problem import STATUS, Problem
from memoryd.wire import exact_json

NO_STORE = {"Cache-Control": "no-store"}


def json_response(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    content = exact_json.dumps(body)
    return Response(
        content.encode("utf-8", "replace"), status, headers, media_type="application/json"
    )


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        json.dumps(problem.body()),
        status_code=STATUS[problem.code],
        headers=headers,
        media_type="application/problem+json",
    )
