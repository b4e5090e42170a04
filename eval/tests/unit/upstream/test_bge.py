"""bge-small-en-v1.5: what is missing or wrong of it, how it is run, and what its vectors are."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest

from memconform.errors import UsageError
from memconform.upstream import bge, embedders
from memconform.upstream.embedders import BGE, Bge, chosen_embedder, get_embedder, served_models
from memconform.upstream.script import Script
from memconform.upstream.server import ScriptedUpstream
from tests.conftest import CHECKOUT


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reset the models and cached vectors of other tests."""
    monkeypatch.setenv("MEMCONFORM_CACHE", str(tmp_path / "cache"))
    embedders._instance.cache_clear()
    yield
    embedders._instance.cache_clear()


class _Session:
    """Stands in for onnxruntime's: a token's state is its number, at the place of its position."""

    made: tuple[bytes, Any, list[str]]
    shapes: list[tuple[int, ...]]

    def __init__(self, model: bytes, options: Any, providers: list[str]) -> None:
        type(self).made, type(self).shapes = (model, options, providers), []

    def run(self, outputs: None, inputs: dict[str, Any]) -> list[Any]:
        assert outputs is None
        ids = inputs["input_ids"]
        assert set(inputs) == {"input_ids", "attention_mask", "token_type_ids"}
        assert (inputs["attention_mask"] == 1).all()
        assert not inputs["token_type_ids"].any()
        self.shapes.append(ids.shape)
        states = np.zeros((*ids.shape, 384), dtype=np.float32)
        states[..., 0], states[..., 1] = 3, 4 * (ids - 100)
        return [states]


class _Options:
    intra_op_num_threads = inter_op_num_threads = 0

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self.entries[key] = value


class _Tokenizer:
    """Stands in for the tokenizer: 101, then the length of each word."""

    @staticmethod
    def from_buffer(content: bytes) -> "_Tokenizer":
        assert content == b"{}"
        return _Tokenizer()

    def no_padding(self) -> None: ...

    def enable_truncation(self, tokens: int) -> None:
        assert tokens == 512

    def encode_batch(self, texts: Sequence[str]) -> list[SimpleNamespace]:
        return [SimpleNamespace(ids=[101, *map(len, text.split())]) for text in texts]


@pytest.fixture
def with_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install stand-ins of the packages of the extra."""
    runtime, tokenizers = ModuleType("onnxruntime"), ModuleType("tokenizers")
    monkeypatch.setattr(runtime, "InferenceSession", _Session, raising=False)
    monkeypatch.setattr(runtime, "SessionOptions", _Options, raising=False)
    monkeypatch.setattr(tokenizers, "Tokenizer", _Tokenizer, raising=False)
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    monkeypatch.setitem(sys.modules, "tokenizers", tokenizers)
    monkeypatch.setattr(embedders, "util", SimpleNamespace(find_spec=lambda _: object()))
    _set_version(monkeypatch, "1.0")


def _set_version(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(embedders, "metadata", SimpleNamespace(version=lambda _: version))


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An artificial artefact at its place in a data folder with a space in its name."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "my data"))
    path = bge.jar()
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as files:
        files.writestr("bge-small-en-v1.5-q.onnx", b"weights")
        files.writestr("bge-small-en-v1.5-q-tokenizer.json", b"{}")
    monkeypatch.setattr(bge, "SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return path


def _refused() -> UsageError:
    with pytest.raises(UsageError) as raised:
        get_embedder(BGE)
    return raised.value


def test_missing_runtime_names_the_extra(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jar.exists()
    nothing = SimpleNamespace(find_spec=lambda name: None if name == "onnxruntime" else object())
    monkeypatch.setattr(embedders, "util", nothing)
    error = _refused()
    assert (error.code, error.hint) == ("extra_missing", "pip install 'memconform[models]'")
    assert BGE not in served_models()


@pytest.mark.usefixtures("with_runtime")
def test_missing_weights_name_the_file_and_the_command_that_fetches_it(jar: Path) -> None:
    jar.unlink()
    error = _refused()
    assert (error.code, str(jar) in error.message) == ("model_missing", True)
    assert "'" in error.hint, "the folder is quoted for the shell"
    assert BGE not in served_models()


def test_command_brings_the_artefact_to_its_place(jar: Path, tmp_path: Path) -> None:
    """A stand-in for Maven does what `dependency:copy` does with these flags."""
    artificial = shutil.move(jar, tmp_path / "in-the-repository.jar")
    (tmp_path / "mvn").write_text(
        f"#!{sys.executable}\n"
        "import shutil, sys\n"
        "goal, *flags = sys.argv[1:]\n"
        "values = dict(flag.removeprefix('-D').split('=', 1) for flag in flags)\n"
        "group, name, version = values['artifact'].split(':')\n"
        "assert (goal, group) == ('dependency:copy', 'dev.langchain4j')\n"
        "target = f\"{values['outputDirectory']}/{name}-{version}.jar\"\n"
        f"shutil.copy({str(artificial)!r}, target)\n"
    )
    (tmp_path / "mvn").chmod(0o755)
    subprocess.run(["/bin/sh", "-c", bge.fetch_command()], env={"PATH": str(tmp_path)}, check=True)
    bge.require_pinned(jar)


@pytest.mark.usefixtures("with_runtime")
def test_another_file_is_refused_with_both_digests(jar: Path) -> None:
    pinned = bge.SHA256
    jar.write_bytes(b"another version")
    assert BGE in served_models(), "a list of models reads no weights"
    error = _refused()
    assert error.code == "model_differs"
    assert hashlib.sha256(b"another version").hexdigest() in error.message
    assert pinned in error.message
    assert bge.fetch_command() in error.hint


@pytest.mark.usefixtures("with_runtime")
def test_unreadable_artefact_is_an_error_of_the_user(jar: Path) -> None:
    jar.unlink()
    jar.mkdir()
    error = _refused()
    assert (error.code, "cannot be read" in error.message) == ("model_differs", True)


@pytest.mark.usefixtures("with_runtime", "jar")
def test_texts_go_through_one_at_a_time_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a batch, int8 activations would be rounded by the largest of all its texts."""
    texts = ["the lamp burns", "the", "a lamp", "the"]
    vectors = chosen_embedder(BGE.upper()).embed(texts)
    assert [list(vector[:3]) for vector in vectors] == [pytest.approx([0.6, 0.8, 0])] * 4
    assert _Session.shapes == [(1, 2), (1, 3), (1, 4)], "by length, each once"
    model, options, providers = _Session.made
    assert (model, providers) == (b"weights", ["CPUExecutionProvider"])
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)
    assert options.entries == {"session.x64quantprecision": "1"}
    embedders._instance.cache_clear()
    assert get_embedder(BGE).embed(texts) == vectors
    assert len(_Session.shapes) == 3, "cached"
    embedders._instance.cache_clear()
    _Session.shapes.clear()
    _set_version(monkeypatch, "1.1")
    get_embedder(BGE).embed(texts)
    assert len(_Session.shapes) == 3, "another version may round otherwise"


real = pytest.mark.skipif(
    BGE not in served_models(), reason="bge-small-en-v1.5 is not installed: run make models"
)


@real
def test_vector_is_near_the_published_one() -> None:
    """fastembed's tests publish the beginning of a vector, by weights in full precision.

    Those weights give it here within 2e-4, these in int8 within 5e-3.
    """
    [vector] = get_embedder(BGE).embed(["hello world"])
    published = [0.01522374, -0.02271799, 0.00860278, -0.07424029, 0.00386434]
    assert list(vector[:5]) == pytest.approx(published, abs=6e-3)


@real
def test_similarities_are_near_those_of_full_precision() -> None:
    """The model in float32, from the artefact without `-q`, gave these cosines."""
    pairs = {
        ("The cat sits outside", "The cat plays in the garden"): 0.8056,
        ("The new movie is awesome", "The new movie is so great"): 0.9657,
        ("I love pasta", "Do you like pizza?"): 0.6518,
        ("Ilse lights the lamp at dusk.", "When it gets dark, the lantern is lit by Ilse."): 0.8318,
        ("The kiln holds forty bowls.", "The cat sits outside"): 0.4735,
    }
    for (one, other), expected in pairs.items():
        first, second = (np.array(vector) for vector in get_embedder(BGE).embed([one, other]))
        assert np.linalg.norm(first) == pytest.approx(1, abs=1e-6)
        assert float(first @ second) == pytest.approx(expected, abs=0.02)


@real
def test_real_vector_does_not_depend_on_the_texts_beside_it() -> None:
    model = Bge()._model
    texts = ["Ilse lights the lamp at dusk.", "lamp " * 600, ""]
    alone = [next(iter(model.embed([text]))) for text in texts]
    assert all(map(np.array_equal, model.embed(texts), alone))


@pytest.mark.usefixtures("with_runtime")
def test_user_without_a_home_has_no_such_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("memconform.user_cache.user_data_path", lambda _: Path("~"))
    assert BGE not in served_models()
    assert _refused().code == "no_home"


@pytest.mark.usefixtures("with_runtime", "jar")
@pytest.mark.parametrize("change", [Path.unlink, Path.touch])
async def test_weights_that_are_missing_or_wrong_are_a_404(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(bge, "SHA256", "0" * 64)
    change(bge.jar())
    transport = httpx.ASGITransport(ScriptedUpstream(Script()).app())
    async with httpx.AsyncClient(transport=transport, base_url="http://upstream") as http:
        answer = await http.post("/v1/embeddings", json={"model": BGE, "input": "x"})
    assert (answer.status_code, "mvn dependency:copy" in answer.text) == (404, True)


def test_page_names_the_artefact_and_its_digest() -> None:
    page = (CHECKOUT / "docs" / "UPSTREAM.md").read_text(encoding="utf-8")
    artefact, _, _ = bge.fetch_command().partition(" -DoutputDirectory")
    assert artefact in page
    assert bge.SHA256 in page
    assert bge.jar().name in page
