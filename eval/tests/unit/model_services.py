"""A scripted model service, and a model of a session that asks it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from memconform.datasets.question import Question
from memconform.errors import UsageError
from memconform.llm.budget import Ledger
from memconform.llm.names import ModelName
from memconform.llm.session import CallPolicy, LlmSession, Model
from memconform.llm.settings import endpoint
from memconform.scoring.judge.prompt import judge_request

OPENAI, ANTHROPIC = "openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5"
NAMES = (OPENAI, ANTHROPIC)
OPENAI_NAME = ModelName("openai", "m")
KEY = {"OPENAI_API_KEY": "sk-0123456789"}
ANY_HOST = "0.0.0.0"  # noqa: S104 - not bound to
FAR = "https://models.example/v1"
RIGHT = '{"reason": "same", "verdict": "correct", "score": 1.0}'
WRONG = '{"reason": "other city", "verdict": "incorrect", "score": 0.0}'
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "input_tokens": 100, "output_tokens": 10}


@dataclass(frozen=True)
class Sent:
    """A response of the script."""

    body: object = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        kind = "text/html" if text.startswith("<") else "application/json"
        headers = {"Content-Type": kind, **self.headers, "Content-Length": f"{len(text.encode())}"}
        lines = [f"HTTP/1.1 {self.status} X", *(f"{name}: {headers[name]}" for name in headers)]
        return "\r\n".join((*lines, "", text)).encode()


def completion(content: object, reason: str = "stop", **more: Any) -> Sent:
    """A completion that both vendors' APIs could have sent."""
    message = {"role": "assistant", "content": content}
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
    body = {
        "model": "m",
        "choices": [{"message": message, "finish_reason": reason}],
        "content": blocks,
        "stop_reason": {"stop": "end_turn", "length": "max_tokens"}.get(reason, reason),
        "usage": USAGE,
    }
    return Sent(body | more)


def error_object(error: object, **more: Any) -> Sent:
    return Sent({"id": None, "choices": None, "usage": None, "error": error} | more)


Answer = Callable[[dict[str, Any]], Sent]


@dataclass
class Service:
    """A service that answers by a function of the request, or with these, the last one for ever."""

    answer: Answer
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = int(head.partition("content-length:")[2].partition("\r\n")[0])
                request = json.loads(await reader.readexactly(size))
                self.requests.append(request)
                writer.write(self.answer(request).encoded())
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def in_turn(*responses: Sent) -> Answer:
    left = list(responses)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


@asynccontextmanager
async def served(answer: Answer | Sent) -> AsyncIterator[Service]:
    service = Service(in_turn(answer) if isinstance(answer, Sent) else answer)
    server = await asyncio.start_server(service.serve, "127.0.0.1", 0)
    service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        server.close()


@asynccontextmanager
async def opened(service: Service, name: str = OPENAI, **policy: Any) -> AsyncIterator[Model]:
    settings: dict[str, Any] = {"deadline_s": 60, "cache": "off"} | policy
    session = LlmSession(
        Ledger(5.0),
        policy=CallPolicy(**settings),
        env={
            "OPENAI_API_KEY": "k",
            "ANTHROPIC_API_KEY": "k",
            "OPENAI_BASE_URL": f"{service.url}/v1",
            "ANTHROPIC_BASE_URL": service.url,
        },
    )
    try:
        yield session.model(ModelName.parse(name, {}))
    finally:
        await session.aclose()


def request_for(answer: str = "Brel") -> Any:
    return judge_request(Question(id="q", question="Where?", answers=("Brel",)), answer)


def refusal(name: ModelName, env: dict[str, str]) -> UsageError:
    """The error for variables by which a service cannot be reached."""
    with pytest.raises(UsageError) as raised:
        endpoint(name, env)
    return raised.value
