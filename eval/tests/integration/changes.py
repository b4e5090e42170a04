"""Changes to a brain, and everything a daemon shows of it before and after each request."""

import secrets
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from memconform.daemons.discovery import find_runner
from memconform.daemons.manifest_runner import ManagedDaemon, ManifestRunner
from memconform.daemons.sdk_runner import Launch
from tests.clients import client_of
from tests.integration.serving import CHECKOUT

Request = tuple[str, str, dict[str, Any]]
"""Method, path below the brain, and keyword arguments of httpx."""

Contents = dict[str, Any] | None
"""Everything a daemon shows of a brain; None if the brain does not exist."""


def document(path: str, text: str, **attributes: object) -> dict[str, object]:
    content = b64encode(text.encode()).decode()
    return {"path": path, "contentType": "text/plain", "contentBase64": content, **attributes}


def ingest(*documents: dict[str, object]) -> Request:
    return "POST", "/ingest/batch", {"json": {"documents": documents}}


def put(path: str, text: str) -> Request:
    return "PUT", "/documents", {"params": {"path": path}, "content": text}


def append(path: str, text: str) -> Request:
    return "POST", "/documents/append", {"params": {"path": path}, "content": text}


def delete(path: str) -> Request:
    return "DELETE", "/documents", {"params": {"path": path}}


def rename(old: str, new: str) -> Request:
    return "POST", "/documents/rename", {"json": {"from": old, "to": new}}


_CREATE: Request = ("POST", "", {"json": {"description": "of herons"}})
REMOVE: Request = ("DELETE", "", {"headers": {"X-Confirm-Delete": "yes"}})

BASE = (
    _CREATE,
    ingest(
        document("a.md", "The heron waits.", title="Heron", tags=["x"], metadata={"n": 2**53 + 1}),
        document("f/g.md", "---\ntitle: Otter\ntags: [y]\n---\nThe otter waits, too."),
        document("f/h.md", "A lion sleeps."),
    ),
)

CHANGES: Mapping[str, Sequence[Request]] = {
    "created": (put("n/e/w.md", "A new heron."),),
    "replaced": (put("a.md", "The zebra waits."),),
    "appended": (append("a.md", " It waits for fish."),),
    "renamed": (rename("a.md", "c/d.md"),),
    "renamed-over": (rename("a.md", "f/g.md"),),
    "deleted": (delete("f/g.md"),),
    "batch": (
        (
            "POST",
            "/documents/batch-ops",
            {
                "json": {
                    "ops": [
                        {"type": "rename", "path": "a.md", "to": "b.md"},
                        {"type": "write", "path": "a.md", "content_base64": "QSB0b2FkLg=="},
                        {"type": "delete", "path": "f/h.md"},
                        {"type": "append", "path": "f/g.md", "content_base64": "IFdhaXRzLg=="},
                    ]
                }
            },
        ),
    ),
    "ingested": (
        ingest(
            document("a.md", "The crane waits.", title="Crane"),
            document("new.md", "A stork waits.", tags=["z"]),
        ),
    ),
    "removed": (REMOVE,),
    "recreated": (REMOVE, _CREATE, put("a.md", "A second heron.")),
    "in-a-row": (put("a.md", "One."), append("a.md", " Two."), delete("a.md")),
}


@asynccontextmanager
async def serving(
    sdk: str, folder: Path, command: Sequence[str] = (), *, embedder: str = "fake"
) -> AsyncIterator[tuple[ManagedDaemon, httpx.AsyncClient]]:
    """Start a daemon on the state folder `folder/state`.

    `command` precedes the daemon's own command line, as `strace` does.
    """
    runner = find_runner(sdk, CHECKOUT)
    assert isinstance(runner, ManifestRunner)
    argv = [*command, *runner.serving.argv]
    runner.serving = runner.serving.model_copy(update={"argv": argv})
    runner.use_variables({"JB_EMBED_PROVIDER": embedder})
    await runner.build(lambda _: None)
    async with (
        runner.serve(_launch(sdk, folder)) as daemon,
        client_of(daemon.base_url) as client,
    ):
        yield daemon, client


def _launch(sdk: str, folder: Path) -> Launch:
    folder.mkdir(parents=True, exist_ok=True)
    # At its end, a run kills all processes that have its id, also those of tests beside this one.
    return Launch(run_id=f"changes-{sdk}-{secrets.token_hex(4)}", folder=folder)


async def sent(client: httpx.AsyncClient, brain: str, request: Request) -> httpx.Response:
    method, path, arguments = request
    address = f"/v1/brains/{brain}{path}"
    if request is _CREATE:
        address = "/v1/brains"
        arguments = {"json": {"brainId": brain, **arguments["json"]}}
    return await client.request(method, address, **arguments)


async def send(client: httpx.AsyncClient, brain: str, request: Request) -> None:
    answer = await sent(client, brain, request)
    assert answer.is_success, answer.text


async def contents(client: httpx.AsyncClient, brain: str) -> Contents:
    """Everything a daemon shows of a brain, except ids and times, in which equal brains differ."""
    answer = await client.get(f"/v1/brains/{brain}")
    if answer.status_code == 404:
        return None
    about = answer.json()
    assert about.pop("brainId") == brain
    listing = (
        await client.get(f"/v1/brains/{brain}/documents", params={"recursive": "true"})
    ).json()
    documents = {}
    for item in listing["items"]:
        read = await client.get(f"/v1/brains/{brain}/documents/read", params={"path": item["path"]})
        assert read.is_success, read.text
        documents[item["path"]] = read.text
    found = {}
    for mode in ("bm25", "semantic"):
        body = {"query": "a heron waits", "mode": mode, "topK": 50}
        chunks = (await client.post(f"/v1/brains/{brain}/search", json=body)).json()["chunks"]
        found[mode] = [
            {key: chunk.get(key) for key in ("path", "text", "title", "tags", "metadata", "score")}
            for chunk in chunks
        ]
    return {"about": about, "documents": documents, "found": found}


async def expected(client: httpx.AsyncClient) -> dict[str, list[Contents]]:
    """The contents of a fresh brain after the first 0, 1, … requests of each change."""
    states: dict[str, list[Contents]] = {}
    for number, (name, requests) in enumerate(CHANGES.items()):
        states[name] = []
        for done in range(len(requests) + 1):
            brain = f"fresh{number}-{done}"
            for request in (*BASE, *requests[:done]):
                await send(client, brain, request)
            states[name].append(await contents(client, brain))
    return states
