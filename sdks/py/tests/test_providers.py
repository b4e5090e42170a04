"""Providers: settings rejected at the start, and failures of upstreams."""

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.testclient import TestClient

from memoryd.api.app import create_app
from memoryd.api.ask import events
from memoryd.api.bodies import Ask
from memoryd.brain.ingest import NewDocument
from memoryd.brain.store import BrainStore
from memoryd.config import Config, ConfigError
from memoryd.daemon.providers import Providers, _Factory, create_providers
from memoryd.embed.embed import Vector, normalize
from memoryd.embed.featurehash import FeatureHash
from memoryd.embed.openai import OpenAIEmbedder
from memoryd.index.index import Index, IndexedDocument
from memoryd.llm.llm import Prompt, Usage
from memoryd.prompt.prompt import Note
from memoryd.reader.llm import LLMReader
from memoryd.reader.reader import AnswerEnd, Question
from memoryd.retrieve.plan import RetrievalRequest
from memoryd.retrieve.retrieve import RetrievalResult, Retriever, Trace
from memoryd.upstream import SilenceTimeout, UpstreamError

_HOME = Path("unused")

_WAIT_SECONDS = 60
"""For what takes a moment, and for ever where it is broken."""


@pytest.mark.parametrize(
    ("env", "message"),
    [
        ({"JB_LLM_PROVIDER": "gpt"}, "JB_LLM_PROVIDER=gpt"),
        ({"JB_LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k"}, "JB_LLM_MODEL"),
        ({"JB_LLM_PROVIDER": "openai", "JB_LLM_MODEL": "m"}, "OPENAI_API_KEY"),
        ({"JB_LLM_PROVIDER": "anthropic", "JB_LLM_MODEL": "m"}, "ANTHROPIC_API_KEY"),
        ({"JB_EMBED_PROVIDER": "ollama"}, "JB_EMBED_MODEL"),
        ({"JB_EMBED_PROVIDER": "anthropic"}, "JB_EMBED_PROVIDER=anthropic"),
        ({"JB_RERANK_PROVIDER": "http"}, "JB_RERANK_URL"),
        ({"JB_RERANK_PROVIDER": "http", "JB_RERANK_URL": "nonsense"}, "JB_RERANK_URL"),
        ({"JB_UPSTREAM_TIMEOUT": "abc"}, "JB_UPSTREAM_TIMEOUT=abc"),
        *(
            ({"JB_UPSTREAM_TIMEOUT": value}, "must be a decimal number")
            for value in ("0", "-1", "+5", " 5", "5\n", "1_0", "1e3", "inf", "nan", "٣", "1000001")
        ),
        (
            {"JB_EMBED_PROVIDER": "ollama", "JB_EMBED_MODEL": "m", "OLLAMA_HOST": "::bad"},
            "OLLAMA_HOST",
        ),
        (
            {
                "JB_EMBED_PROVIDER": "openai",
                "JB_EMBED_MODEL": "m",
                "OPENAI_API_KEY": "k",
                "OPENAI_BASE_URL": "nonsense",
            },
            "OPENAI_BASE_URL",
        ),
        ({"JB_RERANK_PROVIDER": "llm", "JB_LLM_PROVIDER": "fake"}, "JB_LLM_PROVIDER=fake"),
        (
            {"JB_LLM_PROVIDER": "ollama", "JB_LLM_MODEL": "m", "JB_UPSTREAM_TIMEOUT": "soon"},
            "JB_UPSTREAM_TIMEOUT=soon",
        ),
    ],
)
def test_invalid_settings_are_rejected_at_the_start(env: Mapping[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Config.from_env(_HOME, env)


def test_an_api_key_alone_selects_no_provider() -> None:
    env = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "OLLAMA_HOST": "h:1"}
    selected = create_providers(Config.from_env(_HOME, env))
    assert (selected.reader, selected.embedder, selected.reranker) == (None, None, None)


class _Chat:
    def __init__(self, *pieces: str | Usage | UpstreamError) -> None:
        self._pieces = pieces
        self.prompts: list[Prompt] = []

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Usage]:
        self.prompts.append(prompt)
        for piece in self._pieces:
            if isinstance(piece, UpstreamError):
                raise piece
            yield piece

    async def complete(self, prompt: Prompt) -> str:
        raise AssertionError(prompt)


async def _read(
    chat: _Chat, *, date: str | None = None, model: str | None = None
) -> list[str | AnswerEnd]:
    notes = [Note("a.md", "Ilse."), Note("b.md", "Pepper.")]
    question = Question("Who?", notes, date=date, model=model)
    return [piece async for piece in LLMReader(chat).read(question)]


async def test_a_models_answer_is_streamed_and_its_notes_are_cited() -> None:
    chat = _Chat("Pepper ", "[2]", " and Ilse [1].", Usage(7, 3))
    *deltas, closing = await _read(chat, model="other", date="2026-01-02")
    assert deltas == ["Pepper ", "[2]", " and Ilse [1]."]
    assert closing == AnswerEnd([1, 0], Usage(7, 3))
    [prompt] = chat.prompts
    assert prompt.model == "other"
    assert "Date of the question: 2026-01-02\n" in prompt.user


@pytest.mark.parametrize("pieces", [[], [" ", "\n"], [Usage(1, 0)]])
async def test_a_reply_without_text_is_a_failure(pieces: list[str | Usage]) -> None:
    with pytest.raises(UpstreamError, match="no text"):
        await _read(_Chat(*pieces))


async def test_silence_is_a_timeout_and_keys_are_redacted() -> None:
    silence_timeout = SilenceTimeout("openai", 0.01, "sk-canary")
    with pytest.raises(UpstreamError) as silent:
        await silence_timeout.wait(asyncio.Event().wait())
    assert silent.value.code == "timeout"

    async def refuse() -> None:
        raise ValueError("bad key sk-canary")

    with pytest.raises(UpstreamError) as refused:
        await silence_timeout.wait(refuse())
    assert (refused.value.code, "sk-canary" in refused.value.detail) == ("bad_gateway", False)


class _Reranker:
    name = "reversing"

    async def scores(self, query: str, notes: Sequence[Note]) -> list[float]:
        del query
        return [float(position) for position in range(len(notes))]


def test_the_top_chunks_are_reranked_and_the_rest_stay_below(tmp_path: Path) -> None:
    providers = Providers(embedder=FeatureHash(), reranker=_Reranker())
    with TestClient(create_app(Config(tmp_path), providers)) as http:
        http.post("/v1/brains", json={"brainId": "b"})
        for n in range(5):
            body = {"path": f"{n}.md", "contentType": "text/plain", "contentBase64": "emVicmE="}
            assert http.post("/v1/brains/b/ingest/file", json=body).is_success
        search = {"query": "zebra", "mode": "hybrid-rerank", "rerankTopN": 3, "topK": 4}
        found = http.post("/v1/brains/b/search", json=search).json()
    assert [(c["path"], c["score"]) for c in found["chunks"]] == [
        ("2.md", 2.0),
        ("1.md", 1.0),
        ("0.md", 0.0),
        ("3.md", -1.0),
    ]
    trace = found["trace"]
    assert (trace["effectiveMode"], trace["reranked"], trace["rerankProvider"]) == (
        "hybrid-rerank",
        True,
        "reversing",
    )


def test_the_query_prefix_applies_to_queries_only(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    class Seeing(FeatureHash):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            seen.append(list(texts))
            return super().embed(texts)

    store = BrainStore(tmp_path, Seeing())
    store.create("b", None).ingest([NewDocument("a.md", b"zebra", {})])
    Retriever("query: ").retrieve(store.get("b"), RetrievalRequest("zebra", 5, mode="semantic"))
    store.close()
    assert seen == [["zebra"], ["query: zebra"]]


def test_vectors_of_other_dimensions_are_rejected() -> None:
    index = Index(None, "openai/m")
    document = IndexedDocument("a", "", None, [], {}, ["x"], [normalize([1.0, 0.0])])
    index.apply([document])
    with pytest.raises(UpstreamError, match="3 dimensions, the index holds 2"):
        index.apply(
            [IndexedDocument("b", "", None, [], {}, ["x"], [np.zeros(3, dtype=np.float32)])]
        )
    index.close()


def test_a_brain_opens_as_soon_as_its_embedder_is_back(tmp_path: Path) -> None:
    class Away(FeatureHash):
        away = False

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if self.away:
                raise UpstreamError("bad_gateway", "away")
            return super().embed(texts)

    without = BrainStore(tmp_path, None)
    without.create("b", None).ingest([NewDocument("a.md", b"zebra", {})])
    without.close()
    embedder = Away()
    embedder.away = True
    store = BrainStore(tmp_path, embedder)
    with pytest.raises(UpstreamError):
        store.get("b").counts()
    embedder.away = False
    assert store.get("b").counts().vectors == 1
    store.close()


class _Client:
    """A fake vendor client whose service returns the same vector for every text."""

    def __init__(self) -> None:
        self.calls = 0
        self.embeddings = self

    async def create(self, *, input: list[str], **_: object) -> object:  # noqa: A002 - the vendor's
        self.calls += 1
        item = SimpleNamespace(index=0, embedding=[3.0, 4.0])
        return SimpleNamespace(data=[item] * len(input))


def test_brains_with_a_remote_embedder_are_opened_by_their_first_request(
    tmp_path: Path,
) -> None:
    without = BrainStore(tmp_path, None)
    without.create("b", None).ingest([NewDocument("a.md", b"zebra", {})])
    without.close()
    client = _Client()
    embedder = OpenAIEmbedder("openai/m@1", client, "m", SilenceTimeout("openai", _WAIT_SECONDS))
    with TestClient(create_app(Config(tmp_path), Providers(embedder=embedder))) as http:
        assert http.get("/healthz").is_success
        assert client.calls == 0
        assert http.get("/v1/brains/b").json()["vectors"] == 1
        assert client.calls == 1


def test_a_brain_that_waits_for_a_service_does_not_block_others(tmp_path: Path) -> None:
    release = threading.Event()

    class Slow(FeatureHash):
        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if "slow" in texts:
                release.wait(_WAIT_SECONDS)
            return super().embed(texts)

    without = BrainStore(tmp_path, None)
    for brain, text in (("a", b"slow"), ("b", b"zebra")):
        without.create(brain, None).ingest([NewDocument("x.md", text, {})])
    without.close()
    store = BrainStore(tmp_path, Slow())
    opening = threading.Thread(target=store.get("a").open)
    opening.start()
    assert store.get("b").counts().vectors == 1
    assert opening.is_alive()
    release.set()
    opening.join(_WAIT_SECONDS)
    store.close()


def test_embedders_at_different_addresses_have_different_names() -> None:
    base = {"JB_EMBED_PROVIDER": "ollama", "JB_EMBED_MODEL": "m"}
    names = set()
    for host in ("one:1", "two:1"):
        config = Config.from_env(_HOME, base | {"OLLAMA_HOST": host})
        embedder = create_providers(config).embedder
        assert embedder is not None
        names.add(embedder.name)
    assert len(names) == 2


@pytest.mark.parametrize(
    ("host", "base_url"),
    [
        ("", "http://127.0.0.1:11434/v1/"),
        ("models", "http://models:11434/v1/"),
        ("[::1]", "http://[::1]:11434/v1/"),
        ("models:7", "http://models:7/v1/"),
        ("https://models.example", "https://models.example/v1/"),
    ],
)
def test_a_bare_ollama_host_has_its_default_port(host: str, base_url: str) -> None:
    env = {"JB_EMBED_PROVIDER": "ollama", "JB_EMBED_MODEL": "m", "OLLAMA_HOST": host}
    selected = create_providers(Config.from_env(_HOME, env))
    assert isinstance(selected.embedder, OpenAIEmbedder)
    assert str(selected.embedder._client.base_url) == base_url


async def test_an_unexpected_reader_error_ends_the_stream_properly() -> None:
    class Broken:
        async def read(self, question: Question) -> AsyncIterator[str | AnswerEnd]:
            del question
            yield "a"
            raise RecursionError

    trace = Trace(
        requested_mode="bm25",
        effective_mode="bm25",
        embedder_used=False,
        reranked=False,
        rerank_provider=None,
        fell_back_to_bm25=False,
        candidate_k=50,
        search_ms=0.1,
        tuning=None,
    )
    result = RetrievalResult([], trace)
    sent = [e async for e in events(Broken(), Ask(question="x"), result)]
    stream = b"".join(sent[1:]).removesuffix(b"\n\n").split(b"\n\n")
    assert [event.split(b"\n")[0] for event in stream] == [
        b"event: answer_delta",
        b"event: error",
        b"event: done",
    ]
    assert b'"ok":false' in stream[-1]


def test_an_empty_base_address_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client would read the variable itself, and take the empty string for an address."""
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    env = {
        "JB_LLM_PROVIDER": "openai",
        "JB_LLM_MODEL": "m",
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "",
    }
    config = Config.from_env(_HOME, env)
    client, _ = _Factory(config)._openai(config.llm)
    assert str(client.base_url) == "https://api.openai.com/v1/"
