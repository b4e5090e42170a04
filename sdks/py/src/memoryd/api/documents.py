"""Reading, listing and changing single documents."""

from collections.abc import Callable
from typing import TypeVar

from anyio import to_thread
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from memoryd.api.bodies import Rename
from memoryd.api.decode import parse
from memoryd.api.parameters import flag, parameters
from memoryd.api.requests import body_of, brain_of, require_at_most, run_cancellable
from memoryd.api.respond import NO_STORE, json_response
from memoryd.brain.draft import Draft
from memoryd.files.list import Listing, stat_of
from memoryd.files.path import canonical
from memoryd.files.tree import Tree
from memoryd.problem import Problem

T = TypeVar("T")

_WRITE_LIMIT = 2 * 2**20
"""Bytes in the body of one PUT or append."""


class Documents(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        brain = await brain_of(request)
        query = parameters(request, "dir", "recursive", "include_generated", "glob")
        folder = query.get("dir", "")
        listing = Listing(
            folder=canonical(folder, "dir") if folder else "",
            recursive=flag(query, "recursive"),
            hidden=flag(query, "include_generated"),
            glob=query.get("glob"),
        )

        def list_items() -> Response:
            return json_response({"items": brain.read_files(listing.items)}, headers=NO_STORE)

        return await to_thread.run_sync(list_items)

    async def head(self, request: Request) -> Response:
        await _find(request, lambda tree, path: tree.documents.file(path))
        return Response(media_type="application/octet-stream", headers=NO_STORE)

    async def put(self, request: Request) -> Response:
        return await _edit_content(request, Draft.write)

    async def delete(self, request: Request) -> Response:
        brain = await brain_of(request)
        path = _path(request)
        await run_cancellable(request, lambda: brain.change(lambda draft: draft.delete(path)))
        return Response(status_code=204)


async def append(request: Request) -> Response:
    return await _edit_content(request, Draft.append)


async def read(request: Request) -> Response:
    content = await _find(request, lambda tree, path: tree.documents.read(path))
    return Response(
        content,
        media_type="application/octet-stream",
        headers={**NO_STORE, "X-Content-Type-Options": "nosniff"},
    )


async def stat(request: Request) -> Response:
    return json_response(await _find(request, stat_of), headers=NO_STORE)


async def rename(request: Request) -> Response:
    raw = await body_of(request)
    brain = await brain_of(request)
    body = parse(Rename, raw)
    path, to = canonical(body.from_, "from"), canonical(body.to, "to")
    await run_cancellable(request, lambda: brain.change(lambda draft: draft.rename(path, to)))
    return Response(status_code=204)


async def _edit_content(request: Request, apply: Callable[[Draft, str, bytes], None]) -> Response:
    content = await body_of(request)
    brain = await brain_of(request)
    path = _path(request)
    require_at_most(_WRITE_LIMIT, len(content))
    await run_cancellable(request, lambda: brain.change(lambda draft: apply(draft, path, content)))
    return Response(status_code=204)


async def _find(request: Request, find: Callable[[Tree, str], T | None]) -> T:
    brain = await brain_of(request)
    path = _path(request)
    found = await to_thread.run_sync(brain.read_files, lambda tree: find(tree, path))
    if found is None:
        raise Problem("not_found", f"no document {path!r}")
    return found


def _path(request: Request) -> str:
    return canonical(parameters(request, "path").get("path", ""))
