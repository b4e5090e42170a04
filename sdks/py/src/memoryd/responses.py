"""JSON and problem responses."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from memoryd.problems import STATUS, Problem

NO_STORE = {"Cache-Control": "no-store"}


def json_response(
    body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
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
