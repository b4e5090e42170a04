"""Bodies with a content encoding: kept decoded, and never inflated past what is kept."""

import gzip
import zlib

import httpx
import pytest

from memconform.client.content_encoding import BodyDecoder
from memconform.client.recorder import BODY_LIMIT, Exchange

_BODY = b'{"detail": "a word"}' * 50


def _raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def _exchange(encoding: str, *pieces: bytes, request: httpx.Request | None = None) -> Exchange:
    exchange = Exchange(request or httpx.Request("GET", "http://daemon/x"))
    exchange.begin_response(httpx.Response(200, headers={"content-encoding": encoding}))
    for piece in pieces:
        exchange.add_body(piece)
    return exchange


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(_BODY)),
        ("GZIP", gzip.compress(_BODY[:500]) + gzip.compress(_BODY[500:])),
        ("deflate", zlib.compress(_BODY)),
        ("deflate", _raw_deflate(_BODY)),
    ],
    # Bytes of gzip hold the time, and names of tests must be the same in each process of xdist.
    ids=["gzip", "two members", "zlib", "raw"],
)
@pytest.mark.parametrize("size", [3, 10_000])
def test_transcript_holds_the_decoded_body_and_notes_it(
    encoding: str, packed: bytes, size: int
) -> None:
    """A secret within gzip once went unmasked into wire/."""
    pieces = [packed[i : i + size] for i in range(0, len(packed), size)]
    exchange = _exchange(encoding, *pieces)
    assert bytes(exchange.body) == _BODY
    assert exchange.transcript().endswith(
        _BODY + b"\n(decoded from %s)\n" % encoding.lower().encode()
    )


def test_gzip_bomb_is_not_inflated() -> None:
    bomb = gzip.compress(bytes(64 * 2**20))
    exchange = _exchange("gzip", bomb, bomb)
    assert (len(exchange.body), exchange.truncated) == (BODY_LIMIT, True)
    assert len(BodyDecoder("gzip").decode(bomb, 10)) == 10


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "gzip"])
def test_undecodable_body_is_dropped(encoding: str) -> None:
    exchange = _exchange(encoding, b"no such encoding, and perhaps a secret")
    assert bytes(exchange.body) == b""
    assert b"were dropped" in exchange.transcript()
    assert b"perhaps" not in exchange.transcript()


def test_broken_end_keeps_the_decoded_part() -> None:
    packed = gzip.compress(_BODY)
    exchange = _exchange("gzip", packed[:-8], b"\xff" * 20)
    assert bytes(exchange.body) == _BODY
    assert b"were dropped" in exchange.transcript()


@pytest.mark.parametrize("encoding", ["", "identity"])
def test_body_without_an_encoding_is_kept_unchanged(encoding: str) -> None:
    exchange = _exchange(encoding, b"\x1f\x8b plain")
    assert exchange.transcript().endswith(b"\x1f\x8b plain\n")


def test_request_body_is_shown_decoded() -> None:
    headers = {"content-encoding": "gzip"}
    request = httpx.Request("POST", "http://d/x", headers=headers, content=gzip.compress(_BODY))
    shown = _exchange("", b"", request=request).transcript()
    assert b"> " + _BODY in shown
    assert b"> (decoded from gzip)" in shown
