"""What the three daemons send to the upstream, and how they handle its failures."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.conftest import WAIT_SECONDS
from tests.integration.serving import Served, SharedDaemons

pytestmark = pytest.mark.asyncio(loop_scope="module")

_LAMP = "Ilse lights the lamp at dusk."
_KILN = "The kiln holds forty bowls."

_PROVIDERS = ("openai", "anthropic", "ollama")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def daemons(
    cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[SharedDaemons]:
    del cache
    shared = SharedDaemons(tmp_path_factory.mktemp("daemons"))
    yield shared
    await shared.close()


def _document(path: str, text: str) -> dict[str, Any]:
    encoded = base64.b64encode(text.encode()).decode()
    return {"path": path, "contentType": "text/plain", "contentBase64": encoded}


async def _fill(server: Served) -> None:
    answer = await server.daemon.post("/v1/brains", json={"brainId": "b"})
    assert answer.status_code == 201
    for path, text in (("raw/lamp.md", _LAMP), ("raw/kiln.md", _KILN)):
        answer = await server.daemon.post(
            "/v1/brains/b/ingest/file", json=_document(path, text) | {"title": "T"}
        )
        assert answer.status_code == 200, answer.text


def _chat(**reply: object) -> dict[str, Any]:
    return {"kind": "chat", "reply": reply}


@pytest.mark.capability("upstream")
@pytest.mark.parametrize("provider", _PROVIDERS)
async def test_every_sdk_sends_the_same_requests(
    sdk: str, provider: str, daemons: SharedDaemons
) -> None:
    embed = "ollama" if provider == "ollama" else "openai"
    variables = {"JB_LLM_PROVIDER": provider, "JB_EMBED_PROVIDER": embed}
    async with daemons.served(sdk, **variables) as server:
        await _fill(server)
        assert [r["body"] for r in await server.requests("embeddings")] == [
            {"model": "fh256-1", "input": [text], "encoding_format": "float"}
            for text in (_LAMP, _KILN)
        ]
        await server.script()
        events = await server.ask(
            "Who lights the lamp?",
            topK=1,
            mode="hybrid",
            questionDate="2026-01-02",
            readerMode="augmented",
        )
        [request] = await server.requests("chat")
        [embedded] = await server.requests("embeddings")
        assert embedded["body"]["input"] == ["Who lights the lamp?"]
    user = (
        f"Notes:\n\n[1] raw/lamp.md (T)\n{_LAMP}\n\n"
        "Date of the question: 2026-01-02\nQuestion: Who lights the lamp?"
    )
    body = _with_plain_texts(request["body"])
    system = body["system"] if provider == "anthropic" else body["messages"][0]["content"]
    assert system.endswith("and trust the latest.")
    assert (
        body
        == {
            "openai": {
                "model": "extractive",
                "stream": True,
                "stream_options": {"include_usage": True},
                "messages": [
                    {"role": "system", "content": system},
                    {"role": "user", "content": user},
                ],
            },
            "anthropic": {
                "model": "extractive",
                "stream": True,
                "max_tokens": 1024,
                "system": system,
                "messages": [{"role": "user", "content": user}],
            },
        }["anthropic" if provider == "anthropic" else "openai"]
    )
    assert [name for name, _ in events] == ["retrieve", *["answer_delta"] * 7, "citation", "done"]
    assert events[-2][1]["path"] == "raw/lamp.md"
    done = events[-1][1]
    assert (done["ok"], done["answer"]) == (True, f"{_LAMP} [1]")
    assert done["usage"]["outputTokens"] == 7


def _with_plain_texts(value: Any) -> Any:
    """Replace lists of a single text part by that text: some clients always send lists."""
    match value:
        case [{"type": "text", "text": str(text)}]:
            return text
        case list():
            return [_with_plain_texts(item) for item in value]
        case dict():
            return {key: _with_plain_texts(item) for key, item in value.items()}
    return value


_FAULTS: dict[str, tuple[dict[str, Any], str, int]] = {
    # What the upstream does, the error's code, the deltas that come before it.
    "refused with Retry-After": (_chat(status=429, retry_after=0.1), "bad_gateway", 0),
    "refused for longer than is waited": (_chat(status=429, retry_after=50), "timeout", 0),
    "500": (_chat(status=500), "bad_gateway", 0),
    "401": (_chat(status=401), "bad_gateway", 0),
    "hangs": (_chat(fault="hang"), "timeout", 0),
    "hangs in the stream": (_chat(deltas=["a ", "b "], fault="hang", after=1), "timeout", 1),
    "slow to begin": (_chat(delay_ms=600_000), "timeout", 0),
    "cut": (_chat(deltas=["a ", "b "], fault="cut", after=1), "bad_gateway", 1),
    "ends early": (_chat(deltas=["a ", "b "], fault="ends", after=1), "bad_gateway", 1),
    "ends before it began": (_chat(fault="ends"), "bad_gateway", 0),
    "error object": (_chat(deltas=["a ", "b "], fault="error", after=1), "bad_gateway", 1),
    "bad JSON": (_chat(deltas=["a ", "b "], fault="bad_json", after=1), "bad_gateway", 1),
    "no text": (_chat(deltas=[]), "bad_gateway", 0),
    "blank text": (_chat(deltas=[" "]), "bad_gateway", 1),
}


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_upstream_fault_never_becomes_an_answer(
    sdk: str, provider: str, daemons: SharedDaemons
) -> None:
    async def put(server: Served, name: str, code: str, deltas: int) -> None:
        # The client gives up on a daemon that waits for what it was told to wait for.
        events = await server.ask(f"Who lights the lamp? ({name})")
        assert [event for event, _ in events] == [
            "retrieve",
            *["answer_delta"] * deltas,
            "error",
            "done",
        ], name
        error, done = events[-2][1], events[-1][1]
        assert (error["code"], done["ok"]) == (code, False), (name, error)
        assert error["message"], name

    async with daemons.served(sdk, JB_LLM_PROVIDER=provider) as server:
        await _fill(server)
        rules = ({**rule, "contains": f"({name})"} for name, (rule, _, _) in _FAULTS.items())
        await server.script(*rules)
        cases = (put(server, name, code, n) for name, (_, code, n) in _FAULTS.items())
        await asyncio.gather(*cases)
        assert (await server.ask("Who lights the lamp?"))[-1][1]["ok"] is True


async def test_a_temporary_refusal_is_retried(sdk: str, daemons: SharedDaemons) -> None:
    async with daemons.served(sdk) as server:
        await _fill(server)
        refused = _chat(status=429, retry_after=0.05)
        await server.script({**refused, "times": 2})
        assert (await server.ask("Who lights the lamp?"))[-1][1]["ok"] is True
        assert len(await server.requests("chat")) == 3
        await server.script(_chat(status=500))
        assert (await server.ask("Who lights the lamp?"))[-1][1]["ok"] is False
        assert len(await server.requests("chat")) == 3


async def test_deltas_are_forwarded_as_they_arrive(sdk: str, daemons: SharedDaemons) -> None:
    async with daemons.served(sdk, JB_UPSTREAM_TIMEOUT="600") as server:
        await _fill(server)
        await server.script(_chat(deltas=["one ", "two ", "three"], fault="hang", after=2))
        arrived = 0
        async with server.daemon.stream(
            "POST", "/v1/brains/b/ask", json={"question": "lamp?"}
        ) as response:
            async for line in response.aiter_lines():
                arrived += line == "event: answer_delta"
                if arrived == 2:
                    break
            # Both are here, and the upstream has more to say.
            [request] = await server.requests("chat")
            assert request["outcome"] == "open"
    assert arrived == 2


async def test_client_disconnect_cancels_the_upstream_request(
    sdk: str, daemons: SharedDaemons
) -> None:
    async with daemons.served(sdk, JB_UPSTREAM_TIMEOUT="600") as server:
        await _fill(server)
        # Longer than anybody waits below.
        await server.script(_chat(deltas=["a "] * 1000, delta_delay_ms=300))
        async with server.daemon.stream(
            "POST", "/v1/brains/b/ask", json={"question": "lamp?"}
        ) as response:
            async for line in response.aiter_lines():
                if line == "event: answer_delta":
                    break
        await _await_outcomes(server, "chat", ["client_gone"])


async def test_client_disconnect_during_retrieval_cancels_the_upstream_request(
    sdk: str, daemons: SharedDaemons
) -> None:
    async with daemons.served(sdk, JB_UPSTREAM_TIMEOUT="600") as server:
        await _fill(server)
        await server.script({"kind": "embeddings", "reply": {"fault": "hang"}})
        asking = asyncio.create_task(
            server.daemon.post("/v1/brains/b/ask", json={"question": "lamp?", "mode": "hybrid"})
        )
        await _await_outcomes(server, "embeddings", ["open"])
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        await _await_outcomes(server, "embeddings", ["client_gone"])


async def _await_outcomes(server: Served, kind: str, expected: list[str]) -> None:
    """Wait until the upstream reports these outcomes of all requests of a kind."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            if [request["outcome"] for request in await server.requests(kind)] == expected:
                return
            await asyncio.sleep(0.05)  # short limit: between two looks


@pytest.mark.parametrize(("key", "sent"), [("", None), ("sk-rerank", "Bearer ***")])
async def test_reranker_gets_its_own_key(
    sdk: str, key: str, sent: str | None, daemons: SharedDaemons
) -> None:
    async with daemons.served(sdk, JB_RERANK_API_KEY=key) as server:
        await _fill(server)
        await server.script()
        search = {"query": "lamp", "mode": "hybrid-rerank"}
        assert (await server.daemon.post("/v1/brains/b/search", json=search)).status_code == 200
        [request] = await server.requests("rerank")
        assert request["headers"].get("authorization") == sent


def _plain_faults(kind: str) -> list[tuple[str, dict[str, Any], int]]:
    def rule(**reply: object) -> dict[str, Any]:
        return {"kind": kind, "reply": reply}

    nan = {"data": [{"index": 0, "embedding": ["x"]}], "results": [{"index": 0}]}
    return [
        ("500", rule(status=500), 502),
        ("429", rule(status=429, retry_after=0.1), 502),
        ("hangs", rule(fault="hang"), 504),
        ("cut", rule(fault="cut"), 502),
        ("bad JSON", rule(fault="bad_json"), 502),
        ("too few", rule(body={"data": [], "results": []}), 502),
        ("no numbers", rule(body=nan), 502),
        ("another shape", rule(body={"hello": "world"}), 502),
    ]


@pytest.mark.parametrize("kind", ["embeddings", "rerank"])
async def test_search_with_a_failing_upstream_does_not_fall_back_to_another_mode(
    sdk: str, kind: str, daemons: SharedDaemons
) -> None:
    async with daemons.served(sdk) as server:
        await _fill(server)
        faults = _plain_faults(kind)
        await server.script(*({**rule, "contains": f"({name})"} for name, rule, _ in faults))

        async def put(name: str, status: int) -> None:
            search = {"query": f"lamp ({name})", "mode": "hybrid-rerank"}
            answer = await server.daemon.post("/v1/brains/b/search", json=search)
            assert answer.status_code == status, (name, answer.text)
            assert answer.headers["content-type"] == "application/problem+json", name
            assert answer.json()["detail"], name

        await asyncio.gather(*(put(name, status) for name, _, status in faults))
        search = {"query": "lamp", "mode": "hybrid-rerank"}
        answer = await server.daemon.post("/v1/brains/b/search", json=search)
        assert answer.json()["trace"]["effectiveMode"] == "hybrid-rerank"


async def test_ingest_with_a_failing_embedder_stores_nothing(
    sdk: str, daemons: SharedDaemons
) -> None:
    async with daemons.served(sdk) as server:
        await _fill(server)
        faults = _plain_faults("embeddings")
        await server.script(*({**rule, "contains": f"({name})"} for name, rule, _ in faults))

        async def put(name: str, status: int, route: str) -> None:
            document = _document("raw/new.md", f"Pepper the mule ({name}).")
            body = document if route == "file" else {"documents": [document]}
            answer = await server.daemon.post(f"/v1/brains/b/ingest/{route}", json=body)
            assert answer.status_code == status, (name, route, answer.text)

        # All at once: silence is waited out once, not for each route.
        calls = (put(name, code, to) for name, _, code in faults for to in ("file", "batch"))
        await asyncio.gather(*calls)
        counts = (await server.daemon.get("/v1/brains/b")).json()
        assert (counts["documents"], counts["pending"]) == (2, 0)


async def test_sixty_four_chunks_are_embedded_in_one_call(sdk: str, daemons: SharedDaemons) -> None:
    async with daemons.served(sdk) as server:
        await _fill(server)
        await server.script()
        documents = [_document(f"raw/{n}.md", f"Note {n}.") for n in range(65)]
        answer = await server.daemon.post(
            "/v1/brains/b/ingest/batch", json={"documents": documents}
        )
        assert answer.status_code == 200, answer.text
        calls = await server.requests("embeddings")
        assert [len(call["body"]["input"]) for call in calls] == [64, 1]


@pytest.mark.parametrize("provider", ["http", "llm"])
async def test_a_reranker_reorders(sdk: str, provider: str, daemons: SharedDaemons) -> None:
    async with daemons.served(sdk, JB_RERANK_PROVIDER=provider) as server:
        await _fill(server)
        search = {"query": "lamp", "mode": "hybrid", "topK": 2}
        before = (await server.daemon.post("/v1/brains/b/search", json=search)).json()
        assert [c["path"] for c in before["chunks"]] == ["raw/lamp.md", "raw/kiln.md"]
        swapped: dict[str, Callable[[], dict[str, Any]]] = {
            "http": lambda: {
                "kind": "rerank",
                "reply": {
                    "body": {
                        "results": [
                            {"index": 1, "relevance_score": 0.9},
                            {"index": 0, "relevance_score": 0.25},
                        ]
                    }
                },
            },
            "llm": lambda: _chat(text='Here: {"scores": [0.25, 0.9]}'),
        }
        await server.script(swapped[provider]())
        search["mode"] = "hybrid-rerank"
        after = (await server.daemon.post("/v1/brains/b/search", json=search)).json()
        assert [(c["path"], c["score"]) for c in after["chunks"]] == [
            ("raw/kiln.md", 0.9),
            ("raw/lamp.md", 0.25),
        ]
        assert after["trace"]["rerankProvider"] == provider
        [request] = await server.requests("rerank" if provider == "http" else "chat")
        body = request["body"]
        if provider == "http":
            assert body == {"query": "lamp", "documents": [_LAMP, _KILN], "top_n": 2}
        else:
            assert body["messages"][0]["content"].startswith("You judge how well")
            assert body["messages"][1]["content"].endswith("Question: lamp")
            assert not body.get("stream")


async def test_failing_model_reranker_fails_the_search(sdk: str, daemons: SharedDaemons) -> None:
    async with daemons.served(sdk, JB_RERANK_PROVIDER="llm") as server:
        await _fill(server)
        for reply in ('{"scores": [1]}', "I cannot say.", ""):
            await server.script(_chat(text=reply))
            answer = await server.daemon.post(
                "/v1/brains/b/search", json={"query": "lamp", "mode": "hybrid-rerank"}
            )
            assert answer.status_code == 502, reply


async def test_model_of_a_request_overrides_the_configured_one(
    sdk: str, daemons: SharedDaemons
) -> None:
    async with daemons.served(sdk) as server:
        await _fill(server)
        await server.script()
        await server.ask("lamp?", model="other")
        [request] = await server.requests("chat")
        assert request["body"]["model"] == "other"
