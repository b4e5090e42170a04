"""A daemon that tells a secret in every form it can: none of them reaches a file or a stream."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ended

Call = Callable[..., Ended]
Scripted = Callable[..., Path]


def _forms(secret: str) -> list[bytes]:
    """The secret and its encodings; of base64 only the letters that encode nothing else."""
    size = len(secret)
    padded = [base64.b64encode(b"." * n + secret.encode() + b"!") for n in range(3)]
    return [
        secret.encode(),
        *(text[-(-n * 8 // 6) : (n + size) * 8 // 6] for n, text in enumerate(padded)),
        "".join(f"\\u{ord(letter):04x}" for letter in secret).encode(),
        "".join(f"%{ord(letter):02x}" for letter in secret).encode(),
        secret.encode("utf-16-le").strip(b"\0"),
    ]


@pytest.mark.capability("redaction")
@pytest.mark.parametrize("secret", ["canary-header/value", "Zq7-x"])
@pytest.mark.parametrize("scenario", ["search-retrieve-only", "ask-basic"])
def test_a_header_that_the_daemon_repeats_in_every_form_is_in_no_file_and_no_stream(
    memconform: Call, scripted: Scripted, dataset: Path, secret: str, scenario: str
) -> None:
    """Packed by gzip it went into wire/, and what was shorter than eight letters everywhere."""
    ended = memconform(
        *("run", "--sdk", scripted("echoes_header"), "--dataset", dataset, "--scorer", "exact"),
        *("--scenario", scenario, "--mode", "bm25", "--seed-reference-brain"),
        *("--header", f"X-Key: {secret}", "--json", "-", "--log-level", "debug"),
    )
    assert ended.question["verdict"] == "daemon_error"
    assert ended.result["counts"]["correct"] == 11
    [run] = json.loads(ended.out)["runs"]
    assert run["run_id"] == ended.result["run_id"]
    written = [path for path in (ended.folder / "results").rglob("*") if path.is_file()]
    [wire] = (path for path in written if path.suffix == ".http")
    assert b"(decoded from gzip)" in wire.read_bytes()
    assert b"(hidden)" in wire.read_bytes()
    everything = {str(path): path.read_bytes().lower() for path in written}
    everything |= {"out": ended.out.lower().encode(), "err": ended.err.lower().encode()}
    for name, content in everything.items():
        for form in _forms(secret):
            assert form.lower() not in content, (name, form)
