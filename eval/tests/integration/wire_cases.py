"""Plays the wire cases of jeffs-brain/memory, `spec/conformance/http-contract.json`."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from httpx_sse import EventSource, SSEError

from tests.conftest import WAIT_SECONDS

Case = Mapping[str, Any]


def read_cases(checkout: Path) -> tuple[list[Case], dict[str, str]]:
    """The cases of a checkout, and what their placeholders stand for."""
    path = checkout / "spec" / "conformance" / "http-contract.json"
    loaded = json.loads(path.read_text())
    return loaded["cases"], loaded["placeholders"]


class Player:
    """Plays cases, each with a brain of its own."""

    def __init__(self, client: httpx.AsyncClient, placeholders: Mapping[str, str]) -> None:
        self._client = client
        self._placeholders = placeholders
        self._events: dict[str, AsyncIterator[tuple[str, str]]] = {}
        self._played = 0

    async def failures(self, case: Case) -> list[str]:
        """What a case expects and the daemon does otherwise, up to the first failing request."""
        self._played += 1
        brain = f"wire-{self._played}"
        created = await self._client.post("/v1/brains", json={"brainId": brain})
        if created.status_code != httpx.codes.CREATED:
            return [f"POST /v1/brains: {created.status_code}"]
        async with AsyncExitStack() as stack:
            steps = [
                *case.get("setup", ()),
                {**case["request"], "expect": case["expectedResponse"]},
            ]
            for step in (*steps, *case.get("followUp", ()), *case.get("teardown", ())):
                wrong = [each async for each in self._play(step, brain, stack)]
                if wrong:
                    return wrong
        return []

    async def _play(
        self, step: Mapping[str, Any], brain: str, stack: AsyncExitStack
    ) -> AsyncIterator[str]:
        expect = step.get("expect", {})
        match step.get("kind"):
            case "open-sse":
                url = self._filled(step["path"], brain)
                self._events[step["name"]] = await stack.enter_async_context(self._stream(url))
            case "await-sse-event":
                data = await _event(self._events[step["name"]], step["event"])
                if data is None:
                    yield f"no event {step['event']}"
                else:
                    for wrong in _wrong_body(expect, data):
                        yield wrong
            case "close-sse":
                del self._events[step["name"]]
            case None:
                async for wrong in self._request(step, brain, expect):
                    yield f"{step['method']} {step['path']}: {wrong}"
            case kind:
                yield f"a step of an unknown kind, {kind}"

    async def _request(
        self, step: Mapping[str, Any], brain: str, expect: Mapping[str, Any]
    ) -> AsyncIterator[str]:
        content = None
        headers = dict(step.get("headers", {}))
        if "bodyBase64" in step:
            content = base64.b64decode(self._filled(step["bodyBase64"], brain))
            headers.setdefault("content-type", "application/octet-stream")
        elif "bodyJson" in step:
            content = json.dumps(step["bodyJson"]).encode()
            headers.setdefault("content-type", "application/json")
        status = expect.get("status", step.get("expectedStatus"))
        url = self._filled(step["path"], brain)
        async with self._client.stream(
            step["method"], url, content=content, headers=headers
        ) as response:
            if status not in (None, response.status_code):
                yield f"status {response.status_code}, not {status}"
                return
            kind = response.headers.get("content-type", "")
            if expect.get("contentType", "") not in kind:
                yield f"content type {kind!r}, not {expect['contentType']}"
            if (events := expect.get("streamAssertions")) is not None:
                stream = _events(response)
                for each in events:
                    if await _event(stream, each["event"]) is None:
                        yield f"no event {each['event']}"
                return
            body = await response.aread()
        encoded = expect.get("bodyBase64", step.get("expectedBodyBase64"))
        if encoded is not None and body != base64.b64decode(self._filled(encoded, brain)):
            yield f"the body is {body!r}"
        for wrong in _wrong_body(expect, body):
            yield wrong

    def _filled(self, text: str, brain: str) -> str:
        if text in self._placeholders:
            return self._placeholders[text]
        return text.replace("BRAIN_ID", quote(brain))

    @asynccontextmanager
    async def _stream(self, url: str) -> AsyncIterator[AsyncIterator[tuple[str, str]]]:
        headers = {"accept": "text/event-stream"}
        async with self._client.stream("GET", url, headers=headers) as response:
            yield _events(response)


async def _events(response: httpx.Response) -> AsyncIterator[tuple[str, str]]:
    async for event in EventSource(response).aiter_sse():
        yield event.event, event.data


async def _event(events: AsyncIterator[tuple[str, str]], name: str) -> str | None:
    """The data of the next event of that name; None if none comes in time."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            async for found, data in events:
                if found == name:
                    return data
    except (TimeoutError, SSEError):
        return None
    return None


def _wrong_body(expect: Mapping[str, Any], body: str | bytes) -> Iterator[str]:
    if "body" not in expect and "bodyAssertions" not in expect:
        return
    loaded = json.loads(body)
    if "body" in expect:
        yield from _differences(expect["body"], loaded)
    for each in expect.get("bodyAssertions", ()):
        if not _holds(each, loaded):
            yield f"not {each}: {loaded}"


def _differences(expected: Any, actual: Any, place: str = "body") -> Iterator[str]:
    """Objects match on the listed keys; lists are equally long."""
    match expected, actual:
        case dict(), dict():
            for key, value in expected.items():
                yield from _differences(value, actual.get(key), f"{place}.{key}")
        case list(), list() if len(expected) == len(actual):
            for number, pair in enumerate(zip(expected, actual, strict=True)):
                yield from _differences(*pair, f"{place}.{number}")
        case "<ISO-8601>", str():
            datetime.fromisoformat(actual)
        case _ if expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
            yield f"{place} is {actual!r}, not {expected!r}"


def _holds(assertion: Mapping[str, Any], body: Any) -> bool:
    if assertion["kind"] == "json-field-equals":
        return bool(body[assertion["field"]] == assertion["value"])
    items = {item["path"]: item["is_dir"] for item in body["items"]}
    match assertion["kind"]:
        case "items-include-path":
            return assertion["path"] in items
        case "items-exclude-path":
            return assertion["path"] not in items
        case "items-files-equal":
            return sorted(path for path, is_dir in items.items() if not is_dir) == sorted(
                assertion["paths"]
            )
        case "items-dirs-equal":
            return sorted(path for path, is_dir in items.items() if is_dir) == sorted(
                assertion["paths"]
            )
        case kind:
            raise ValueError(f"an assertion of an unknown kind, {kind}")
