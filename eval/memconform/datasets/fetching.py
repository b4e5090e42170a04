"""Getting the files of a source: pinned bytes under their name, or none."""

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

State = Literal["ok", "missing", "different"]

_TIMEOUT = httpx.Timeout(60, connect=20)
"""A file server that is silent for a minute will not speak again."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """One file of a source: where it is, where it goes, and which bytes it must be."""

    url: str | None
    """None where nobody has said."""
    path: Path
    size: int
    sha256: str

    @property
    def part(self) -> Path:
        """What has come of it so far."""
        return self.path.with_name(f".{self.path.name}.part")

    @property
    def tag(self) -> Path:
        """The entity tag that the server gave the bytes of `part`."""
        return self.path.with_name(f".{self.path.name}.etag")


def pinned(source: DownloadSource, folder: Path) -> list[Pinned]:
    """The files of a source, as they are or will be in a folder."""

    def one(file: SourceFile) -> Pinned:
        url = None if source.url is None else source.url + file.name
        return Pinned(url, folder / file.name, file.size, file.sha256)

    return [one(file) for file in source.files]


def state(file: Pinned) -> State:
    """Whether the file is there, and the bytes that are pinned.

    Raises:
        UsageError: where it cannot be read.
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
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def http_client() -> httpx.Client:
    return httpx.Client(
        follow_redirects=True,
        timeout=_TIMEOUT,
        # Packed bytes are not those that are pinned, and cannot be gone on with in their middle.
        headers={"User-Agent": f"memconform/{__version__}", "Accept-Encoding": "identity"},
    )


def fetch(file: Pinned, http: httpx.Client, told: Callable[[int], None]) -> bool:
    """Get a file, going on from what an earlier try has left; False where it was there already.

    `told` is called with the bytes that are here so far.

    Raises:
        UsageError: where it cannot be had. What came is kept as `part` if the next try can go on
            from it, and removed if it is not the beginning of the pinned bytes.
    """
    match state(file):
        case "ok":
            return False
        case "different":
            raise UsageError(
                f"{file.path} is there, and not the file that is pinned",
                code="fetch_in_the_way",
                hint="move it away; nothing is replaced",
            )
    if file.url is None:
        raise UsageError(
            f"where {file.path.name} lies is not recorded",
            code="fetch_no_address",
            hint="give --from ADDRESS, of the folder in which its publisher has that revision;"
            " or put the file there by hand",
            excerpt=_by_hand(file),
        )
    with _writing(file) as target:
        if target.tell() > file.size:
            _empty(target)
        told(target.tell())
        if target.tell() < file.size:
            _receive(file, file.url, http, target, told)
        target.flush()
        if (got := sha256_of(file.part)) != file.sha256:
            _remove(file)
            raise _other_bytes(file, f"their sha256 is {got}")
        os.fsync(target.fileno())
        file.part.replace(file.path)
        file.tag.unlink(missing_ok=True)
    return True


@contextmanager
def _writing(file: Pinned) -> Iterator[IO[bytes]]:
    """The part, locked, at its end."""
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
            hint=f"make room for {file.size:,} bytes, or name another folder by --to; what came is"
            " kept, and gone on from",
        ) from error


def _receive(
    file: Pinned, url: str, http: httpx.Client, target: IO[bytes], told: Callable[[int], None]
) -> None:
    """Bring the part to its full size."""
    try:
        with http.stream("GET", url, headers=_range(file, target.tell())) as response:
            _check(file, response, target.tell())
            if response.status_code != httpx.codes.PARTIAL_CONTENT:
                _empty(target)
                _keep_tag(file, response)
            # In pieces of no set size: what is not yet a whole piece would be lost with a cut.
            for piece in response.iter_raw():
                target.write(piece)
                if target.tell() > file.size:
                    _remove(file)
                    raise _other_bytes(file, f"there are more than {file.size:,}")
                told(target.tell())
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _failed(file, target, error) from error
    if target.tell() < file.size:
        raise _cut(file, target, "the answer is over")


def _empty(target: IO[bytes]) -> None:
    target.seek(0)
    target.truncate()


def _range(file: Pinned, start: int) -> dict[str, str]:
    if start == 0:
        return {}
    try:
        return {"Range": f"bytes={start}-", "If-Range": file.tag.read_text(encoding="ascii")}
    except FileNotFoundError:
        # Whether the parts belong together is then for the digest to say.
        return {"Range": f"bytes={start}-"}


def _keep_tag(file: Pinned, response: httpx.Response) -> None:
    """Keep what If-Range takes: a weak tag is none."""
    tag = response.headers.get("ETag", "")
    if tag.startswith('"') and tag.isascii():
        file.tag.write_text(tag, encoding="ascii")
    else:
        file.tag.unlink(missing_ok=True)


def _check(file: Pinned, response: httpx.Response, start: int) -> None:
    """Raise UsageError for an answer that does not hold the bytes that were asked for."""
    status = response.status_code
    if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        _remove(file)
        raise _other_bytes(file, f"there are no more than {start:,} of {file.size:,}")
    if status not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
        raise _refused(file, f"{status} {response.reason_phrase}".strip())
    packing = response.headers.get("Content-Encoding", "identity")
    if packing != "identity":
        raise _refused(file, f"it comes packed by {packing}, which was not asked for")
    if status == httpx.codes.PARTIAL_CONTENT:
        said = response.headers.get("Content-Range", "")
        if said != f"bytes {start}-{file.size - 1}/{file.size}":
            _remove(file)
            raise _other_bytes(file, f"asked for all from byte {start}, it sends {said or '?'!r}")
    elif int(length := response.headers.get("Content-Length", file.size)) != file.size:
        raise _other_bytes(file, f"there are {int(length):,}, not {file.size:,}")


def _remove(file: Pinned) -> None:
    file.part.unlink(missing_ok=True)
    file.tag.unlink(missing_ok=True)


def _failed(file: Pinned, target: IO[bytes], error: Exception) -> UsageError:
    why = str(error) or type(error).__name__
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.ProxyError():
            return UsageError(
                f"{error.request.url.host} is not reached: {why}",
                code="fetch_offline",
                hint="run it again with a network; or bring the file from a machine that has one,"
                " and hold it to its digest by `memconform datasets verify`",
                excerpt=_by_hand(file),
            )
        case httpx.UnsupportedProtocol():
            return _refused(file, why)
        case httpx.TransportError():
            return _cut(file, target, why)
        case _:
            return _refused(file, why)


def _cut(file: Pinned, target: IO[bytes], why: str) -> UsageError:
    return UsageError(
        f"{file.url}: {target.tell():,} of {file.size:,} bytes came, then: {why}",
        code="fetch_cut",
        hint="run it again: it goes on from there",
    )


def _refused(file: Pinned, why: str) -> UsageError:
    return UsageError(
        f"{file.url}: {why}",
        code="fetch_refused",
        hint="try later; or bring the file from elsewhere, and hold it to its digest by"
        " `memconform datasets verify`",
        excerpt=_by_hand(file),
    )


def _other_bytes(file: Pinned, why: str) -> UsageError:
    return UsageError(
        f"{file.url}: these are not the bytes that are pinned: {why}",
        code="fetch_differs",
        hint="run it again; if it stays so, the server has another file",
        excerpt=f"pinned: {file.size:,} bytes, sha256 {file.sha256}",
    )


def _by_hand(file: Pinned) -> str:
    origin = "" if file.url is None else f"from   {file.url}\n"
    return f"{origin}to     {file.path}\nsha256 {file.sha256}"
