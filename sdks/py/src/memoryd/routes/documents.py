"""The store, document by document."""

from collections.abc import Callable

from anyio import to_thread
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from memoryd.listing import Listing, stat_of
from memoryd.models import Rename, parse
from memoryd.paths import canonical
from memoryd.problems import Problem
from memoryd.requests import body_of, brain_of, flag, parameters, refuse_over, unless_gone
from memoryd.responses import NO_STORE, json_response
from memoryd.staged import Staged

_WRITE_LIMIT = 2 * 2**20
"""Bytes of one PUT or append."""


class Documents(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        brain = await brain_of(request)
        given = parameters(request, "dir", "recursive", "include_generated", "glob")
        folder = given.get("dir", "")
        listing = Listing(
            folder=canonical(folder, "dir") if folder else "",
            recursive=flag(given, "recursive"),
            hidden=flag(given, "include_generated"),
            glob=given.get("glob"),
        )

        def listed() -> Response:
            return json_response({"items": brain.look(listing.items)}, headers=NO_STORE)

        return await to_thread.run_sync(listed)

    async def head(self, request: Request) -> Response:
        brain = await brain_of(request)
        path = _path(request)
        state = await to_thread.run_sync(brain.look, lambda tree: tree.documents.file(path))
        if state is None:
            raise _missing(path)
        return Response(media_type="application/octet-stream", headers=NO_STORE)

    async def put(self, request: Request) -> Response:
        return await _store(request, Staged.write)

    async def delete(self, request: Request) -> Response:
        brain = await brain_of(request)
        path = _path(request)
        await unless_gone(request, lambda: brain.change(lambda staged: staged.delete(path)))
        return Response(status_code=204)


async def append(request: Request) -> Response:
    return await _store(request, Staged.append)


async def read(request: Request) -> Response:
    brain = await brain_of(request)
    path = _path(request)
    content = await to_thread.run_sync(brain.look, lambda tree: tree.documents.read(path))
    if content is None:
        raise _missing(path)
    return Response(
        content,
        media_type="application/octet-stream",
        headers={**NO_STORE, "X-Content-Type-Options": "nosniff"},
    )


async def stat(request: Request) -> Response:
    brain = await brain_of(request)
    path = _path(request)
    found = await to_thread.run_sync(brain.look, lambda tree: stat_of(tree, path))
    if found is None:
        raise _missing(path)
    return json_response(found, headers=NO_STORE)


async def rename(request: Request) -> Response:
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Rename, raw)
    path, to = canonical(body.from_, "from"), canonical(body.to, "to")
    await unless_gone(request, lambda: brain.change(lambda staged: staged.rename(path, to)))
    return Response(status_code=204)


async def _store(request: Request, how: Callable[[Staged, str, bytes], None]) -> Response:
    content = await body_of(request)
    brain = await brain_of(request)
    path = _path(request)
    refuse_over(_WRITE_LIMIT, len(content))
    await unless_gone(request, lambda: brain.change(lambda staged: how(staged, path, content)))
    return Response(status_code=204)


def _path(request: Request) -> str:
    return canonical(parameters(request, "path").get("path", ""))


def _missing(path: str) -> Problem:
    return Problem("not_found", f"no document {path!r}")
