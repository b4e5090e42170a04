"""Downloading the files of a source: a file appears under its name only with its pinned bytes."""

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import httpx

from memconform import __version__
from memconform.datasets.files import unreadable
from memconform.datasets.sources import DownloadSource, SourceFile
from memconform.errors import UsageError
from memconform.network import proxy_for
from memconform.network_transport import ShellTransport
from memconform.redaction import masked_address

State = Literal["ok", "missing", "different"]

# Why not pooch: 1.9 checks digests, but `requests.get` in its HTTPDownloader reads proxies,
# certificates and .netrc itself, and its stream_download deletes what a failure leaves: it neither
# resumes nor limits sizes.

_TIMEOUT = httpx.Timeout(60, connect=20)
"""A file server that is silent for a minute is taken to have failed."""


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file of a source: its address, its local path, and its expected size and digest."""

    url: str | None
    """None if the source records no address."""
    path: Path
    size: int
    sha256: str

    @property
    def shown_url(self) -> str:
        """The address without credentials."""
        return "" if self.url is None else masked_address(self.url)

    @property
    def part(self) -> Path:
        """The partial download."""
        return self.path.with_name(f".{self.path.name}.part")

    @property
    def tag(self) -> Path:
        """The file of the entity tag under which the server sent the bytes of `part`."""
        return self.path.with_name(f".{self.path.name}.etag")


def pinned(source: DownloadSource, folder: Path) -> list[PinnedFile]:
    """The files of a source with their paths below `folder`."""

    def one(file: SourceFile) -> PinnedFile:
        url = None if source.url is None else source.url + file.name
        return PinnedFile(url, folder / file.name, file.size, file.sha256)

    return [one(file) for file in source.files]


def state(file: PinnedFile) -> State:
    """Whether the file exists with its pinned bytes.

    Raises:
        UsageError: if it cannot be read (`dataset_unreadable`).
    """
    if not os.path.lexists(file.path):
        return "missing"
    try:
        if file.path.stat().st_size != file.size:
            return "different"
        return "ok" if sha256_of(file.path) == file.sha256 else "different"
    except OSError as error:
        raise unreadable(file.path, error) from error


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def http_client() -> httpx.Client:
    """Build a client for downloads, which follows redirects and accepts no compression.

    It takes proxy and certificates from the environment.

    Connecting, and each wait for bytes, may take `_TIMEOUT`; a whole download has no limit.
    """
    return httpx.Client(
        transport=ShellTransport(),
        trust_env=False,
        follow_redirects=True,
        timeout=_TIMEOUT,
        # Compressed bytes do not match the pinned digest, and cannot be resumed in the middle.
        headers={"User-Agent": f"memconform/{__version__}", "Accept-Encoding": "identity"},
    )


def fetch(file: PinnedFile, http: httpx.Client, progress: Callable[[int], None]) -> bool:
    """Download a file, resuming a partial download; returns False if it already exists.

    `progress` is called with the number of bytes received so far.

    Raises:
        UsageError: if the file cannot be downloaded. The partial download stays in `part` if the
            next attempt can resume it, and is removed if it does not match the pinned file.
    """
    match state(file):
        case "ok":
            return False
        case "different":
            raise UsageError(
                f"{file.path} exists but is not the pinned file",
                code="fetch_in_the_way",
                hint="move it away; no file is overwritten",
            )
    if file.url is None:
        raise UsageError(
            f"no address is recorded for {file.path.name}",
            code="fetch_no_address",
            hint="give --from ADDRESS, the folder in which the publisher has that revision;"
            " or put the file in place by hand",
            excerpt=_by_hand(file),
        )
    with _writing(file) as target:
        if target.tell() > file.size:
            _truncate(target)
        progress(target.tell())
        if target.tell() < file.size:
            _receive(file, file.url, http, target, progress)
        target.flush()
        if (digest := sha256_of(file.part)) != file.sha256:
            _remove(file)
            raise _mismatch(file, f"the sha256 is {digest}")
        os.fsync(target.fileno())
        file.part.replace(file.path)
        file.tag.unlink(missing_ok=True)
    return True


@contextmanager
def _writing(file: PinnedFile) -> Iterator[IO[bytes]]:
    """Open the partial download for appending, locked."""
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with file.part.open("ab") as target:
            try:
                fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(
                    f"{file.path} is being fetched already",
                    code="fetch_locked",
                    hint="wait for the other fetch to end",
                ) from error
            try:
                yield target
            finally:
                if target.tell() == 0:
                    _remove(file)
    except OSError as error:
        raise UsageError(
            f"cannot write {file.part}: {error.strerror}",
            code="fetch_unwritable",
            hint=f"free {file.size:,} bytes, or choose another folder with --to; the partial"
            " download is kept and resumed",
        ) from error


def _receive(
    file: PinnedFile,
    url: str,
    http: httpx.Client,
    target: IO[bytes],
    progress: Callable[[int], None],
) -> None:
    """Download the missing rest of the file."""
    try:
        with http.stream("GET", url, headers=_range(file, target.tell())) as response:
            _check(file, response, target.tell())
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                _truncate(target)
                _store_tag(file, response)
            # Without a chunk size: an incomplete chunk would be lost if the connection breaks.
            for piece in response.iter_raw():
                target.write(piece)
                if target.tell() > file.size:
                    _remove(file)
                    raise _mismatch(file, f"there are more than {file.size:,} bytes")
                progress(target.tell())
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed(file, target, error) from error
    if target.tell() < file.size:
        raise _incomplete(file, target, "the response ended")


def _truncate(target: IO[bytes]) -> None:
    target.seek(0)
    target.truncate()


def _range(file: PinnedFile, start: int) -> dict[str, str]:
    if start == 0:
        return {}
    try:
        return {"Range": f"bytes={start}-", "If-Range": file.tag.read_text(encoding="ascii")}
    except FileNotFoundError:
        # Without a tag, the digest decides whether the parts belong together.
        return {"Range": f"bytes={start}-"}


def _store_tag(file: PinnedFile, response: httpx.Response) -> None:
    """Store the entity tag if it is strong: If-Range does not accept weak ones."""
    tag = response.headers.get("ETag", "")
    if tag.startswith('"') and tag.isascii():
        file.tag.write_text(tag, encoding="ascii")
    else:
        file.tag.unlink(missing_ok=True)


def _check(file: PinnedFile, response: httpx.Response, start: int) -> None:
    """Raise UsageError if the response does not contain the requested bytes."""
    status = response.status_code
    if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        _remove(file)
        raise _mismatch(file, f"the server has no more than {start:,} of {file.size:,} bytes")
    if status not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
        raise _refused(file, f"{status} {response.reason_phrase}".strip())
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding != "identity":
        raise _refused(file, f"the response is compressed with {encoding}, which was not requested")
    if status == httpx.codes.PARTIAL_CONTENT:
        content_range = response.headers.get("Content-Range", "")
        if content_range != f"bytes {start}-{file.size - 1}/{file.size}":
            _remove(file)
            raise _mismatch(
                file,
                f"requested all bytes from {start}, the server sends {content_range or '?'!r}",
            )
    elif int(length := response.headers.get("Content-Length", file.size)) != file.size:
        raise _mismatch(file, f"there are {int(length):,} bytes, not {file.size:,}")


def _remove(file: PinnedFile) -> None:
    file.part.unlink(missing_ok=True)
    file.tag.unlink(missing_ok=True)


def _failed(file: PinnedFile, target: IO[bytes], error: Exception) -> UsageError:
    reason = str(error) or type(error).__name__
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.ProxyError():
            proxy = proxy_for(str(error.request.url), os.environ)
            by_way = "" if proxy is None else f" by way of the proxy {proxy}"
            hint = _certificate_hint(reason)
            if proxy is not None:
                hint += f"check {proxy.variable}, or list the host in NO_PROXY; "
            return UsageError(
                f"cannot reach {error.request.url.host}{by_way}: {reason}",
                code="fetch_offline",
                hint=f"{hint}run it again with a network; or copy the file from a machine that has"
                " one, and check its digest with `memconform datasets verify`",
                excerpt=_by_hand(file),
            )
        case httpx.UnsupportedProtocol():
            return _refused(file, reason)
        case httpx.TransportError():
            return _incomplete(file, target, reason)
        case _:
            return _refused(file, reason)


def _certificate_hint(reason: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" not in reason:
        return ""
    return "set SSL_CERT_FILE to a PEM file with the certificates of this network; "


def _incomplete(file: PinnedFile, target: IO[bytes], reason: str) -> UsageError:
    return UsageError(
        f"{file.shown_url}: received {target.tell():,} of {file.size:,} bytes, then: {reason}",
        code="fetch_cut",
        hint="run it again to resume the download",
    )


def _refused(file: PinnedFile, reason: str) -> UsageError:
    return UsageError(
        f"{file.shown_url}: {reason}",
        code="fetch_refused",
        hint="try later; or get the file from elsewhere, and check its digest with"
        " `memconform datasets verify`",
        excerpt=_by_hand(file),
    )


def _mismatch(file: PinnedFile, reason: str) -> UsageError:
    return UsageError(
        f"{file.shown_url}: not the pinned file: {reason}",
        code="fetch_differs",
        hint="run it again; if it repeats, the server has a different file",
        excerpt=f"pinned: {file.size:,} bytes, sha256 {file.sha256}",
    )


def _by_hand(file: PinnedFile) -> str:
    origin = "" if file.url is None else f"from   {file.shown_url}\n"
    return f"{origin}to     {file.path}\nsha256 {file.sha256}"
