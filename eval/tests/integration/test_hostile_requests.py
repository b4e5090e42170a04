"""Requests that were made to break the scripted upstream: it refuses them, and serves on."""

import contextlib
import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import psutil
import pytest

from memconform.upstream import records, request_bodies

_MEMORY = 3 << 30
"""Limit of address space: it kept 10,000 bodies of any size before."""

_CHAT = "/v1/chat/completions"
_MESSAGES = "/v1/messages"
_EMBEDDINGS = "/v1/embeddings"
_ASKED = {"messages": [{"role": "user", "content": "Question: Who?"}]}
_EMBEDDED = {"model": "fh256-1", "input": ["x"]}


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


@pytest.fixture(scope="module")
def process() -> Iterator[tuple[int, str]]:
    """An upstream as the harness starts it, with little memory: its process and its address."""
    with subprocess.Popen(
        [sys.executable, "-m", "memconform.upstream", "127.0.0.1", "0"],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=_limit_memory,  # noqa: PLW1509 - the child is one thread until it runs
    ) as started:
        assert started.stdout is not None
        yield started.pid, started.stdout.readline().split()[-1]
        assert started.poll() is None, "it has ended"
        started.terminate()


@pytest.fixture
def upstream(process: tuple[int, str]) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=process[1], trust_env=False, timeout=60) as client:
        assert client.put("/_control/script", json={}).status_code == 204
        yield client
        # Whatever was sent, it can be asked for, and the next request is answered.
        assert client.get("/_control/requests").status_code == 200
        assert client.post(_CHAT, json=_ASKED).status_code == 200


def _status(upstream: httpx.Client, path: str, body: str | bytes) -> tuple[int, str]:
    answer = upstream.post(path, content=body, headers={"Content-Type": "application/json"})
    return answer.status_code, answer.text


@pytest.mark.parametrize("path", [_CHAT, _MESSAGES, _EMBEDDINGS, "/rerank"])
@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "chunked"])
def test_too_large_body_is_a_413(upstream: httpx.Client, path: str, *, is_declared: bool) -> None:
    content = b'{"input": "' + b"x" * request_bodies.MAX_BODY + b'"}'
    size = 1 << 16
    pieces = (content[at : at + size] for at in range(0, len(content), size))
    answer = upstream.post(path, content=content if is_declared else pieces)
    assert answer.status_code == 413
    assert "exceeds 33,554,432 bytes" in answer.json()["error"]["message"]
    assert upstream.get("/_control/requests").json() == {"dropped": 0, "requests": []}


def test_too_large_script_is_a_413(upstream: httpx.Client) -> None:
    answer = upstream.put("/_control/script", content=b" " * (request_bodies.MAX_BODY + 1))
    assert answer.status_code == 413


def test_a_body_that_never_ends_is_not_read_for_ever(upstream: httpx.Client) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1 << 20
            yield b" " * (1 << 20)

    # Who sends all the while may see the connection end before the answer.
    with contextlib.suppress(httpx.TransportError):
        assert upstream.post(_CHAT, content=endless()).status_code == 413
    assert sent < 8 * request_bodies.MAX_BODY


@pytest.mark.exhaustive
def test_records_are_bounded_in_bytes_and_say_how_many_were_dropped(
    upstream: httpx.Client, process: tuple[int, str]
) -> None:
    text = "x" * (request_bodies.MAX_BODY - 1_000)
    for number in range(8):
        body = {"model": "fh256-1", "input": [], "user": f"{number}{text}"}
        assert upstream.post(_EMBEDDINGS, json=body).status_code == 400
    answer = upstream.get("/_control/requests")
    assert len(answer.content) < records.MAX_KEPT_BYTES + 10_000
    kept = answer.json()
    assert kept["dropped"] == 8 - len(kept["requests"])
    assert [record["body"]["user"][0] for record in kept["requests"]] == ["4", "5", "6", "7"]
    assert psutil.Process(process[0]).memory_info().rss < 2 << 30


_ABSURD: list[tuple[str, str, str]] = [
    (_CHAT, json.dumps(_ASKED | {"n": 10**9}), "n: must be an integer from 1 to 1"),
    (_CHAT, json.dumps(_ASKED | {"n": 0}), "n: must be an integer"),
    (_CHAT, json.dumps(_ASKED | {"n": 1.5}), "n: must be an integer"),
    (_CHAT, json.dumps(_ASKED | {"max_tokens": 10**12}), "max_tokens: must be an integer from 1"),
    (_CHAT, json.dumps(_ASKED | {"max_tokens": -1}), "max_tokens: must be an integer from 1"),
    (_CHAT, json.dumps(_ASKED | {"max_completion_tokens": True}), "max_completion_tokens"),
    (
        _MESSAGES,
        json.dumps(_ASKED | {"max_tokens": 10**12}),
        "max_tokens: must be an integer from 1",
    ),
    (_MESSAGES, json.dumps(_ASKED | {"max_tokens": True}), "max_tokens: must be an integer from 1"),
    (_MESSAGES, json.dumps(_ASKED), "max_tokens: must be an integer"),
    (
        _EMBEDDINGS,
        json.dumps(_EMBEDDED | {"dimensions": 10**12}),
        "dimensions: must be 256 for fh256-1",
    ),
    (_EMBEDDINGS, json.dumps(_EMBEDDED | {"input": ["x"] * 2_049}), "at most 2,048 texts"),
    (_EMBEDDINGS, json.dumps(_EMBEDDED | {"input": ["x"] * 3_000_000}), "at most 2,048 texts"),
    (_EMBEDDINGS, json.dumps(_EMBEDDED | {"model": "m" * 30_000_000}), "at most 256 characters"),
    ("/rerank", json.dumps({"query": "x", "documents": ["x"] * 10_001}), "at most 10,000 texts"),
    (
        "/rerank",
        json.dumps({"query": "x", "documents": ["x"], "top_n": -1}),
        "top_n: must be an integer",
    ),
    (_CHAT, '{"temperature": NaN}', "NaN is not JSON"),
    (_CHAT, '{"temperature": Infinity}', "Infinity is not JSON"),
    (_CHAT, '{"temperature": 1e999}', "1e999 is too large a number"),
    (_CHAT, '{"seed": ' + "9" * 10_000 + "}", "invalid JSON: Exceeds the limit"),
    (_CHAT, '{"x": ' + "[" * 100_000, "invalid JSON: nests too deeply"),
    (_CHAT, '{"x": ' + "[" * 500 + "]" * 500 + "}", "the JSON nests deeper than 100 levels"),
    (_CHAT, '{"model": "a", "model": "b"}', "invalid JSON: the key 'model' occurs twice"),
    (_CHAT, '{"messages": [{"role": "user", "role": "x"}]}', "the key 'role' occurs twice"),
    (_CHAT, '{"messages": [{"role": "user", "content": "\\ud800"}]}', "half of a surrogate pair"),
    (_CHAT, "[]", "must be JSON objects"),
]


@pytest.mark.parametrize(("path", "body", "says"), _ABSURD, ids=lambda value: str(value)[:60])
def test_absurd_request_is_a_400(upstream: httpx.Client, path: str, body: str, says: str) -> None:
    status, text = _status(upstream, path, body)
    assert (status, json.loads(text)["error"]["message"].count(says)) == (400, 1), text


def test_body_that_is_not_utf_8_is_a_400(upstream: httpx.Client) -> None:
    assert _status(upstream, _CHAT, b'{"x": "\xff"}')[0] == 400


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (_CHAT, _ASKED | {"n": 1, "max_tokens": 1_000_000, "max_completion_tokens": None}),
        (_MESSAGES, _ASKED | {"max_tokens": 1}),
        (_EMBEDDINGS, _EMBEDDED | {"input": ["x"] * 2_048, "dimensions": 256}),
        ("/rerank", {"query": "x", "documents": ["x"] * 10_000, "top_n": 10_000}),
        (
            _CHAT,
            {
                "messages": [
                    {"role": "user", "content": f"Notes:\n{'word. ' * 1_000_000}\n\nQuestion: Who?"}
                ]
            },
        ),
    ],
    ids=["chat", "messages", "embeddings", "rerank", "a long prompt"],
)
def test_what_is_large_and_not_absurd_is_answered(
    upstream: httpx.Client, path: str, body: dict[str, Any]
) -> None:
    assert upstream.post(path, json=body).status_code == 200
    [record] = upstream.get("/_control/requests").json()["requests"]
    assert (record["body"], record["outcome"]) == (body, "answered")


_RULE = '{"rules": [{"reply": %s}]}'


@pytest.mark.parametrize(
    "script",
    [
        _RULE % '{"delay_ms": 31536000000}',
        _RULE % '{"delta_delay_ms": 1e300}',
        _RULE % '{"delay_ms": -1}',
        _RULE % '{"delay_ms": NaN}',
        _RULE % '{"retry_after": 1e999}',
        _RULE % '{"retry_after": 31536000}',
        _RULE % '{"usage": {"input": 1e300, "output": 1}}',
        _RULE % ('{"usage": {"input": ' + "9" * 10_000 + ', "output": 1}}'),
        _RULE % ('{"body": ' + "[" * 500 + "]" * 500 + "}"),
        _RULE % '{"text": "a", "text": "b"}',
        '{"rules": [], "rules": []}',
        "[" * 100_000,
    ],
    ids=lambda script: script[:60],
)
def test_an_absurd_script_is_a_400_and_the_one_before_it_stays(
    upstream: httpx.Client, script: str
) -> None:
    before = {"rules": [{"reply": {"text": "before"}}]}
    assert upstream.put("/_control/script", json=before).status_code == 204
    assert upstream.put("/_control/script", content=script).status_code == 400
    answer = upstream.post(_CHAT, json=_ASKED).json()
    assert answer["choices"][0]["message"]["content"] == "before"


@pytest.mark.parametrize("after", ["9" * 10_000, "-1", "x", "1e9", "²"])
def test_an_invalid_request_number_is_a_400(upstream: httpx.Client, after: str) -> None:
    assert upstream.get("/_control/requests", params={"after": after}).status_code == 400


def test_a_path_with_a_per_cent_sign_is_recorded(upstream: httpx.Client) -> None:
    headers = {"X-Note": '100 % of %s "body": null'}
    assert upstream.post(f"{_CHAT}?a=%25s", json=_ASKED, headers=headers).status_code == 200
    [record] = upstream.get("/_control/requests").json()["requests"]
    assert (record["body"], record["headers"]["x-note"]) == (_ASKED, headers["X-Note"])
