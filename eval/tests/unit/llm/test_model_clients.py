"""Clients of model services: what they read, and which way their requests go."""

import asyncio
import json
import logging
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memconform import redaction
from memconform.datasets.question import Question
from memconform.errors import ExitCode, UsageError
from memconform.llm import session
from memconform.llm.budget import Ledger
from memconform.llm.cache import ReplyCache
from memconform.llm.chat import HaltingError, LlmError, ModelUnusableError, ServiceDownError
from memconform.llm.clients import anthropic_client, openai_client
from memconform.llm.failures import translated
from memconform.llm.http_hooks import Transmission, track_transmission
from memconform.llm.names import ModelName
from memconform.llm.services import model_checks
from memconform.llm.session import CallPolicy, LlmSession, Model
from memconform.llm.settings import endpoint, model_environment
from memconform.llm.unreachable import name_proxy, path_failure
from memconform.scoring.judge.prompt import judge_request, parse_reply
from memconform.storage import provenance

_QUESTION = Question(id="q", question="Where?", answers=("In Brel.",))
_NAMES = ("openai:gpt-4o-2024-08-06", "anthropic:claude-haiku-4-5", "ollama:m", "azure:deployed")
_VERDICT = '{"reason": "same", "verdict": "correct", "score": 1.0}'
_COMPLETION = {
    "model": "m",
    "choices": [{"message": {"role": "assistant", "content": _VERDICT}, "finish_reason": "stop"}],
    "content": [{"type": "text", "text": _VERDICT}],
    "stop_reason": "end_turn",
    "usage": {"prompt_tokens": 9, "completion_tokens": 9, "input_tokens": 9, "output_tokens": 9},
}


@dataclass
class _Server:
    """Answers every request alike; as a proxy, too."""

    body: str = field(default_factory=lambda: json.dumps(_COMPLETION))
    status: int = 200
    raw: bytes | None = None
    """Sent in place of an answer."""
    address: str = ""
    heads: list[str] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [head.split(" ")[1] for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            if self.raw is not None:
                writer.write(self.raw)
                return
            size = head.lower().partition("content-length:")[2].partition("\r\n")[0]
            await reader.readexactly(int(size or 0))
            kind = "text/html" if self.body.startswith("<") else "application/json"
            writer.write(
                f"HTTP/1.1 {self.status} Answer\r\nContent-Type: {kind}\r\nConnection: close\r\n"
                f"Content-Length: {len(self.body)}\r\n\r\n{self.body}".encode()
            )
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def _serving(**answer: Any) -> AsyncIterator[_Server]:
    server = _Server(**answer)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(session, "_FIRST_BACKOFF_S", 0.0)
    provenance.forget_services()
    yield
    provenance.forget_services()
    redaction.forget()


def _env(address: str, **more: str) -> dict[str, str]:
    """Variables of all providers at one address."""
    return {
        "OPENAI_API_KEY": "sk-0123456789",
        "ANTHROPIC_API_KEY": "sk-0123456789",
        "AZURE_OPENAI_API_KEY": "az-0123456789",
        "OPENAI_BASE_URL": f"{address}/v1",
        "ANTHROPIC_BASE_URL": address,
        "AZURE_OPENAI_ENDPOINT": address,
        "OLLAMA_HOST": address,
    } | more


@asynccontextmanager
async def _opened(name: str, env: dict[str, str], *headers: str) -> AsyncIterator[Model]:
    policy = CallPolicy(deadline_s=60, cache="off", allow_unpriced=True)
    # Without replies to keep, no folder of the user is looked up.
    session = LlmSession(
        Ledger(None),
        policy=policy,
        cache=ReplyCache(Path("unused")),
        env=model_environment(headers, env),
    )
    try:
        yield session.model(ModelName.parse(name, {}))
    finally:
        await session.aclose()


async def _ask(name: str, env: dict[str, str], *headers: str) -> str:
    async with _opened(name, env, *headers) as model:
        reply = await model.ask(judge_request(_QUESTION, "an answer"), parse_reply)
        return reply.value.verdict


@pytest.mark.parametrize("name", _NAMES)
async def test_nothing_for_loopback_reaches_a_proxy(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions, references and answers were sent to the proxy of a company."""
    async with _serving() as service, _serving(status=403) as proxy:
        proxies = {
            variable: proxy.address
            for base in ("http_proxy", "https_proxy", "all_proxy")
            for variable in (base, base.upper())
        }
        for variable, value in proxies.items():
            monkeypatch.setenv(variable, value)
        for variable in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(variable, raising=False)
        assert await _ask(name, _env(service.address, **proxies)) == "correct"
    assert proxy.heads == []
    assert len(service.heads) == 1


@pytest.mark.parametrize("name", _NAMES)
async def test_another_host_is_reached_by_its_proxy(name: str) -> None:
    async with _serving() as proxy:
        with_password = proxy.address.replace("http://", "http://me:canary-0123@")
        env = _env("http://models.example", HTTP_PROXY=with_password)
        assert await _ask(name, env) == "correct"
    [path] = proxy.paths
    assert path.startswith("http://models.example")
    assert "proxy-authorization: basic " in proxy.heads[0].lower()


async def test_a_proxy_that_answers_with_a_page_is_named() -> None:
    """The address of the service was to be checked, which was right."""
    async with _serving(body="<html>log in</html>") as proxy:
        env = _env("http://models.example", HTTP_PROXY=proxy.address)
        with pytest.raises(LlmError) as raised:
            await _ask("openai:gpt-4o-2024-08-06", env)
    error = raised.value
    assert f"{proxy.address} (HTTP_PROXY) may have answered so" in error.message


@pytest.mark.parametrize(
    ("observed", "says"), [(False, "did not answer in time"), (True, "no connection to openai:m")]
)
def test_a_proxy_that_holds_an_answer_back_is_named(*, observed: bool, says: str) -> None:
    """A timeout was that of the service alone."""
    waiting = Transmission(observed=observed, proxy="http://p:1 (HTTP_PROXY)")
    message = waiting.timeout_message(ModelName.parse("openai:m", {}))
    assert says in message
    assert message.endswith("by way of the proxy http://p:1 (HTTP_PROXY)")


@pytest.mark.parametrize("name", _NAMES)
async def test_an_attempt_knows_the_proxy_that_it_passes(name: str) -> None:
    request = judge_request(_QUESTION, "an answer")
    async with _serving() as server:
        for host, proxy in (("http://models.example", server.address), (server.address, "")):
            env = _env(host, HTTP_PROXY=server.address)
            async with _opened(name, env) as model:
                with track_transmission() as transmission:
                    await model.chat.complete(request, 60)
            assert transmission.proxy == (f"{proxy} (HTTP_PROXY)" if proxy else "")


def test_a_reply_that_lacks_a_field_is_described_without_the_words_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was `unreadable reply: KeyError: 'choices'`."""
    name = ModelName.parse("openai:m", {})
    sent = Transmission(tried=True, connected=True, sent=True)
    monkeypatch.setattr("memconform.llm.failures.current_transmission", lambda: sent)
    with (
        pytest.raises(LlmError, match=r"unreadable reply: it has no 'choices'$"),
        translated(name, openai, endpoint(name, _env("http://127.0.0.1:1"))),
    ):
        raise KeyError("choices")


@pytest.mark.parametrize(("scheme", "named"), [("http", True), ("https", False)])
def test_a_broken_reply_by_way_of_a_proxy_names_it(scheme: str, *, named: bool) -> None:
    env = _env(f"{scheme}://models.example", HTTP_PROXY="http://p:1", HTTPS_PROXY="http://p:1")
    way = endpoint(ModelName.parse("openai:m", {}), env)
    error = name_proxy(LlmError("the connection failed", code="llm_connection"), way)
    assert ("http://p:1 (HTTP_PROXY) may have answered so" in error.message) is named
    assert ("NO_PROXY" in error.hint) is named
    assert name_proxy(error, way).message.count("may have answered") == named


@pytest.mark.parametrize("status", [403, 407])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_refuses_is_not_a_wrong_key(scheme: str, status: int) -> None:
    """403 of a proxy became `llm_unusable … check the key`."""
    async with _serving(status=status, body="{}") as proxy:
        variables = {f"{scheme.upper()}_PROXY": proxy.address}
        with pytest.raises(ModelUnusableError) as raised:
            await _ask("openai:gpt-4o-2024-08-06", _env(f"{scheme}://models.example", **variables))
    error = raised.value
    assert f"{scheme.upper()}_PROXY" in error.message + error.hint
    assert proxy.address in error.message + error.hint
    if scheme == "https" or status == 407:
        assert error.code == "llm_proxy"
        assert "key" not in error.message + error.hint
    assert len(proxy.heads) == 1


async def test_a_dead_proxy_is_named_as_the_proxy() -> None:
    async with _serving() as gone:
        pass
    env = _env("https://models.example", HTTPS_PROXY=gone.address)
    with pytest.raises(ServiceDownError) as raised:
        await _ask("openai:gpt-4o-2024-08-06", env)
    assert raised.value.code == "llm_unreachable"
    assert f"the proxy {gone.address} (HTTPS_PROXY) cannot be reached" in raised.value.message
    assert "check the proxy" in raised.value.hint


_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (_ESTABLISHED, "answered, but its tunnel to https://models.example"),
        (_ESTABLISHED + b"HTTP/1.1 400 Bad Request\r\n\r\n", "answered, but its tunnel"),
        (b"", "was reached, but did not answer as one"),
        (b"220 mail.example ESMTP\r\n", "was reached, but did not answer as one"),
    ],
)
async def test_a_proxy_that_answers_and_opens_no_tunnel_was_reached(raw: bytes, fault: str) -> None:
    """Each was `the proxy … cannot be reached`, or a failed connection to the service."""
    async with _serving(raw=raw) as proxy:
        env = _env("https://models.example", HTTPS_PROXY=proxy.address)
        with pytest.raises(ServiceDownError) as raised:
            await _ask("openai:gpt-4o-2024-08-06", env)
        checks = {check.provider: check.error for check in await model_checks(env)}
    for error in (raised.value, checks["openai"], checks["anthropic"]):
        assert error is not None
        assert f"the proxy {proxy.address} (HTTPS_PROXY) {fault}" in error.message
        assert "HTTPS_PROXY) cannot be reached" not in error.message


@pytest.mark.parametrize("name", _NAMES[:2])
async def test_a_page_is_no_model_service_and_ends_the_calls(name: str) -> None:
    """It was `'str' object has no attribute 'choices'` until each deadline."""
    async with _serving(body="<html><body>Sign in</body></html>") as service:
        with pytest.raises(HaltingError) as raised:
            await _ask(name, _env(service.address))
    assert "no attribute" not in raised.value.message
    assert f"{name.partition(':')[0].upper()}_BASE_URL" in raised.value.hint
    assert service.address in raised.value.message
    assert raised.value.exit_code == ExitCode.USAGE
    assert len(service.heads) == 1


async def test_a_service_that_is_gone_is_named_with_its_variable() -> None:
    async with _serving() as gone:
        pass
    with pytest.raises(ServiceDownError) as raised:
        await _ask("openai:gpt-4o-2024-08-06", _env(gone.address))
    assert raised.value.hint == "check the address that OPENAI_BASE_URL holds, and the network"
    assert f"{gone.address}/v1 (OPENAI_BASE_URL)" in raised.value.message


async def test_a_wrong_key_is_named_with_its_variable() -> None:
    async with _serving(status=401, body="{}") as service:
        with pytest.raises(ModelUnusableError) as raised:
            await _ask("anthropic:claude-haiku-4-5", _env(service.address))
    assert raised.value.hint == "check the key that ANTHROPIC_API_KEY holds"


async def test_a_404_at_an_address_without_v1_says_so() -> None:
    async with _serving(status=404, body="{}") as service:
        env = _env(service.address, OPENAI_BASE_URL=service.address)
        with pytest.raises(ModelUnusableError) as raised:
            await _ask("openai:gpt-4o-2024-08-06", env)
    assert "OPENAI_BASE_URL" in raised.value.hint
    assert "/v1" in raised.value.hint


def test_a_certificate_that_is_not_trusted_is_named_and_not_tried_again() -> None:
    where = endpoint(ModelName("openai", "m"), {"OPENAI_API_KEY": "k"})
    error = ConnectionError("failed")
    error.__cause__ = ssl.SSLCertVerificationError(1, "self-signed certificate in the chain")
    failure = path_failure(where, error, Transmission())
    assert isinstance(failure, ModelUnusableError)
    assert failure.code == "llm_certificate"
    assert "SSL_CERT_FILE" in failure.hint


async def test_another_request_of_an_attempt_is_judged_by_its_own_connection() -> None:
    """A proxy that was reached, and is then gone, was said to have answered."""
    where = endpoint(
        ModelName("openai", "m"),
        {"OPENAI_API_KEY": "k", "HTTPS_PROXY": "http://proxy.example:3128"},
    )
    transmission = Transmission()
    transmission.begin()
    for event in ("connection.connect_tcp.complete", "proxy.start_tls.started"):
        await transmission.trace(event, {})
    failure = path_failure(where, httpx.ReadError("reset"), transmission)
    assert "its tunnel" in str(failure)
    transmission.begin()
    failure = path_failure(where, httpx.ConnectError("refused"), transmission)
    assert "cannot be reached" in str(failure)
    assert path_failure(where, httpx.ReadError("reset"), transmission) is None


class _Refusing(dict[str, str]):
    """An environment of which nobody may read more than our own variables.

    pydantic reads its own when it builds a deferred class, which another test may have done before.
    """

    def __init__(self, reads: list[object]) -> None:
        super().__init__()
        self._reads = reads

    def _refuse(self, key: object, *_: object) -> None:
        if not str(key).startswith(("MEMCONFORM_", "PYDANTIC_")):
            self._reads.append(key)
            raise AssertionError(f"{key} was read")

    get = __getitem__ = __contains__ = _refuse  # type: ignore[assignment] # whatever is asked for


@pytest.mark.parametrize("name", _NAMES)
async def test_a_vendors_library_reads_no_variable_after_us(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _serving() as service:
        env = _env(service.address, OPENAI_API_VERSION="2024-10-21")
        where = endpoint(ModelName.parse(name, {}), env)
        # What is read when a library is imported decides about logging and its own classes alone.
        openai_client(where)
        anthropic_client(where)
        reads: list[object] = []
        with monkeypatch.context() as patched:
            patched.setattr(os, "environ", _Refusing(reads))
            verdict = await _ask(name, env)
    assert reads == []
    assert verdict == "correct"
    assert len(service.heads) == 1


async def test_headers_of_variables_that_only_a_library_would_read_are_ours_to_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They were sent without having been checked, shown or masked."""
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Foreign: 1")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-foreign")
    async with _serving() as service:
        env = _env(service.address, OPENAI_CUSTOM_HEADERS="X-Ours: 2")
        await _ask("openai:gpt-4o-2024-08-06", env, "X-Team: blue", "Authorization: Token t0123456")
    [head] = [head.lower() for head in service.heads]
    assert "x-ours: 2" in head
    assert "x-team: blue" in head
    assert "authorization: token t0123456" in head
    assert "sk-0123456789" not in head
    assert "foreign" not in head


async def test_a_deployment_of_azure_is_asked_with_its_version_and_key() -> None:
    async with _serving() as service:
        env = _env(service.address, OPENAI_API_VERSION="2024-10-21")
        assert await _ask("azure:deployed", env) == "correct"
        assert await _ask("azure:deployed", _env(service.address)) == "correct"
    assert service.paths == [
        "/openai/deployments/deployed/chat/completions?api-version=2024-10-21",
        "/openai/v1/chat/completions",
    ]
    assert "api-key: az-0123456789" in service.heads[0].lower()


async def test_the_way_to_a_service_is_part_of_provenance_without_secrets() -> None:
    async with _serving() as service:
        await _ask("openai:gpt-4o-2024-08-06", _env(service.address), "X-Team: canary-0123")
    [known] = provenance.HostOrigin.of(["memconform"]).model_services
    assert known.address == f"{service.address}/v1"
    assert known.headers == ["X-Team"]
    assert "canary" not in known.model_dump_json()
    assert "sk-0123456789" not in known.model_dump_json()


async def test_doctor_names_every_service_and_what_is_wrong_with_it() -> None:
    async with _serving(body='{"data": []}') as service, _serving(body="<html>") as page:
        env = _env(
            service.address,
            ANTHROPIC_BASE_URL=page.address,
            OLLAMA_HOST="ftp://h",
            OPENAI_API_VERSION="2024-10-21",
        )
        checks = {check.provider: check for check in await model_checks(env)}
        quiet = await model_checks({"OPENAI_API_KEY": "k"}, reach=False)
    assert list(checks) == ["openai", "anthropic", "ollama", "azure", "fake"]
    assert checks["openai"].error is None
    assert checks["openai"].detail.startswith(f"{service.address}/v1 (OPENAI_BASE_URL); direct; ")
    assert "key OPENAI_API_KEY" in checks["openai"].detail
    assert isinstance(checks["anthropic"].error, ModelUnusableError)
    assert page.address in checks["anthropic"].error.message
    assert isinstance(checks["ollama"].error, UsageError)
    assert service.paths == ["/v1/models", "/openai/models?api-version=2024-10-21"]
    assert "sk-0123456789" not in str(checks)
    assert [(check.provider, check.error) for check in quiet] == [("openai", None), ("fake", None)]


@pytest.mark.parametrize(
    ("status", "code"), [(401, "llm_unusable"), (302, "llm_unusable"), (503, "llm_down")]
)
async def test_doctor_fails_for_a_service_that_answers_no_models(status: int, code: str) -> None:
    async with _serving(status=status, body="{}") as service:
        [check, _] = await model_checks({"OLLAMA_HOST": service.address})
    assert check.error is not None
    assert check.error.code == code


async def test_doctor_names_a_service_that_is_gone_and_forgives_a_missing_list() -> None:
    async with _serving(status=404, body="{}") as service:
        [check, _] = await model_checks({"OLLAMA_HOST": service.address})
        assert check.error is None
        assert "404" in check.detail
    [check, _] = await model_checks({"OLLAMA_HOST": service.address})
    assert check.error is not None
    assert check.error.code == "llm_unreachable"
    assert "OLLAMA_HOST" in check.error.message


async def test_the_log_of_a_vendors_library_shows_no_masked_header(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """OPENAI_LOG=debug printed the headers and prompts of every request."""
    for name in ("openai", "anthropic", "httpx2"):
        caplog.set_level(logging.DEBUG, logger=name)
    async with _serving() as service:
        for name in _NAMES[:2]:
            await _ask(name, _env(service.address), "X-Team: canary-0123")
    assert len(service.heads) == 2
    assert "canary-0123" not in caplog.text
    assert caplog.records == []
