"""The wire cases of jeffs-brain/memory, played to the reference daemons.

They are read from the checkout that JEFFS_BRAIN names; none is copied here.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.serving import served
from tests.integration.wire_cases import Case, Player, read_cases

_CHECKOUT = os.environ.get("JEFFS_BRAIN")


@pytest.mark.skipif(_CHECKOUT is None, reason="JEFFS_BRAIN names no checkout of jeffs-brain/memory")
@pytest.mark.parametrize("sdk", ["go", "py", "ts"])
async def test_the_wire_cases_of_jeffs_brain_are_green(sdk: str, tmp_path: Path) -> None:
    cases, placeholders = read_cases(Path(_CHECKOUT or ""))
    assert len(cases) >= 29
    async with served(sdk, tmp_path) as server:
        player = Player(server.daemon, placeholders)
        wrong = {case["name"]: await player.failures(case) for case in cases}
    assert {name: failures for name, failures in wrong.items() if failures} == {}


def _case(expected: dict[str, Any], **fields: Any) -> Case:
    request = {"method": "GET", "path": "/v1/brains/BRAIN_ID/documents?dir=x"}
    return {"name": "n", "request": request, "expectedResponse": expected, **fields}


_ITEMS = {"items": [{"path": "x/a.md", "is_dir": False}, {"path": "x/y", "is_dir": True}]}
_SETUP = {"method": "PUT", "path": "/v1/brains/BRAIN_ID/documents", "bodyBase64": "BASE64_A"}


def _asserts(kind: str, **fields: Any) -> dict[str, Any]:
    return {"bodyAssertions": [{"kind": kind, **fields}]}


@pytest.mark.parametrize(
    ("case", "is_green"),
    [
        (_case({"status": 200}), True),
        (_case({"status": 404}), False),
        (_case({"contentType": "application/json"}), True),
        (_case({"contentType": "text/event-stream"}), False),
        (_case({"body": {"items": [{"path": "x/a.md"}, {"is_dir": True}]}}), True),
        (_case({"body": {"items": [{"path": "x/a.md"}]}}), False),
        (_case({"body": {"items": [{"path": "x/a.md"}, {"is_dir": 1}]}}), False),
        (_case({"bodyBase64": "BASE64_A"}), False),
        (_case(_asserts("items-include-path", path="x/a.md")), True),
        (_case(_asserts("items-include-path", path="x/b.md")), False),
        (_case(_asserts("items-exclude-path", path="x/a.md")), False),
        (_case(_asserts("items-files-equal", paths=["x/a.md"])), True),
        (_case(_asserts("items-files-equal", paths=["x/a.md", "x/y"])), False),
        (_case(_asserts("items-dirs-equal", paths=["x/y"])), True),
        (_case(_asserts("items-dirs-equal", paths=[])), False),
        (_case(_asserts("json-field-equals", field="items", value=1)), False),
        (_case({"streamAssertions": [{"kind": "expect-event", "event": "ready"}]}), False),
        (_case({"status": 200}, setup=[_SETUP | {"expectedStatus": 200}]), True),
        (_case({"status": 200}, setup=[_SETUP | {"expectedStatus": 204}]), False),
        (_case({"status": 200}, followUp=[_SETUP | {"expectedBodyBase64": "BASE64_A"}]), False),
        (_case({"status": 200}, setup=[{"kind": "dance"}]), False),
    ],
)
async def test_a_daemon_that_answers_otherwise_fails_a_case(case: Case, *, is_green: bool) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(201 if request.url.path == "/v1/brains" else 200, json=_ITEMS)

    assert (await _failures(answer, case) == []) is is_green


async def test_a_stream_without_the_event_fails_a_case() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/brains":
            return httpx.Response(201)
        kind = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=kind, text='event: ready\ndata: {"kind": "created"}\n\n')

    opened = {"kind": "open-sse", "name": "w", "path": "/v1/brains/BRAIN_ID/events"}
    request = {"kind": "await-sse-event", "name": "w", "event": "ready"}
    created = _asserts("json-field-equals", field="kind", value="created")
    green = _case(created, setup=[opened], request=request)
    assert await _failures(answer, green) == []
    deleted = _asserts("json-field-equals", field="kind", value="deleted")
    assert await _failures(answer, _case(deleted, setup=[opened], request=request)) != []
    other = request | {"event": "change"}
    assert await _failures(answer, _case(created, setup=[opened], request=other)) == [
        "no event change"
    ]


async def _failures(answer: Callable[[httpx.Request], httpx.Response], case: Case) -> list[str]:
    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://daemon") as client:
        return await Player(client, {"BASE64_A": "YQ=="}).failures(case)
