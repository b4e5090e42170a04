"""Creating, listing, describing and deleting brains; health and version."""

from dataclasses import asdict
from typing import Any

from anyio import to_thread
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from memoryd import __version__
from memoryd.api.bodies import CreateBrain
from memoryd.api.decode import parse
from memoryd.api.requests import body_of, brain_of, store_of
from memoryd.api.respond import json_response
from memoryd.brain.brain import Brain
from memoryd.problem import Problem


async def healthz(_: Request) -> Response:
    return json_response({"ok": True})


async def version(request: Request) -> Response:
    run_id = request.app.state.config.run_id
    body = {"name": "memoryd-py", "version": __version__, "contract": "1"}
    return json_response(body | ({"runId": run_id} if run_id else {}))


class BrainsEndpoint(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        ids = await to_thread.run_sync(store_of(request).ids)
        return json_response({"items": [{"brainId": brain_id} for brain_id in ids]})

    async def post(self, request: Request) -> Response:
        body = parse(CreateBrain, await body_of(request))
        brain = await to_thread.run_sync(store_of(request).create, body.brain_id, body.description)
        return json_response(await to_thread.run_sync(_brain_info, brain), 201)


class BrainEndpoint(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        brain = await brain_of(request)
        return json_response(await to_thread.run_sync(_brain_info, brain))

    async def delete(self, request: Request) -> Response:
        brain = await brain_of(request)
        # The HTTP parser leaves white space after a value, which is not part of it.
        if request.headers.get("X-Confirm-Delete", "").strip(" \t") != "yes":
            raise Problem(
                "confirmation_required",
                "deleting a brain requires the header X-Confirm-Delete: yes",
            )
        await to_thread.run_sync(store_of(request).delete, brain.id)
        return Response(status_code=204)


def _brain_info(brain: Brain) -> dict[str, Any]:
    # Nothing is ever pending: a write is indexed before it is acknowledged.
    body = {"brainId": brain.id, **asdict(brain.counts()), "pending": 0}
    description = brain.description
    return body if description is None else body | {"description": description}
