"""Drives httpx-sse for `memconform client`, as a program that follows its README would use it.

What the library yields is passed on as it is: only that shows what the library does. sdks/DRIVER.md
describes the lines.
"""

import asyncio
import json
import sys
from importlib.metadata import version
from typing import Any

import httpx
from httpx_sse import SSEError, aconnect_sse

# `timeout` is httpx's limit of each read; httpx has none for a whole call, and repeats none.
CLAIMS = ["ask", "token", "idle", "cancel"]
NAMES = ("retrieve", "answer_delta", "citation", "error", "done")


def write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def ask(client: httpx.AsyncClient, command: dict[str, Any]) -> dict[str, Any]:
    """Ask a question; the last line of the call, without its id."""
    count = 0
    base = httpx.URL(command["baseUrl"])
    url = base.copy_with(path=f"{base.path.rstrip('/')}/v1/brains/{command['brain']}/ask")
    async with aconnect_sse(client, "POST", url, json=command["body"]) as source:
        if not source.response.is_success:
            return {"error": await status_error(source.response)}
        async for sse in source.aiter_sse():
            if sse.event not in NAMES:
                continue
            data = sse.json()
            if not isinstance(data, dict):
                raise TypeError("data is not an object")
            if sse.event == "error" or (sse.event == "done" and data.get("ok") is not True):
                return {"error": {"kind": "daemon", "code": data.get("code")}}
            # Python's JSON has NaN, which a line must not have.
            data = json.loads(json.dumps(data), parse_constant=str)
            write({"id": command["id"], "event": sse.event, "data": data})
            count += 1
            if sse.event == "done":
                return {"ok": None}
            if count == command["cancelAfter"]:
                return {"cancelled": True}
    return {"error": {"kind": "cut", "message": "the stream ended before done"}}


async def status_error(response: httpx.Response) -> dict[str, Any]:
    """The error of a response that is not a success."""
    code = None
    try:
        await response.aread()
        code = response.json()["code"]
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        pass  # The status is enough.
    code = code if isinstance(code, str) else None
    return {"kind": "http", "status": response.status_code, "code": code}


def described(error: Exception) -> dict[str, Any]:
    """An error of httpx or httpx-sse in the words of the contract."""
    kind = "unknown"
    match error:
        case httpx.TimeoutException():
            kind = "timeout"
        case httpx.RemoteProtocolError() | httpx.ReadError():
            kind = "cut"
        case SSEError() | httpx.DecodingError() | ValueError() | TypeError():
            kind = "protocol"
        case httpx.TransportError():
            kind = "connection"
    return {"kind": kind, "message": repr(error)}


async def main() -> None:
    driver = f"httpx-sse {version('httpx-sse')}"
    write({"driver": driver, "protocol": 1, "claims": CLAIMS})
    clients: dict[str, httpx.AsyncClient] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        token, idle = command["token"], command["idleMs"] / 1e3
        key = json.dumps([command["baseUrl"], token, idle])
        if key not in clients:
            headers = {} if token is None else {"Authorization": f"Bearer {token}"}
            clients[key] = httpx.AsyncClient(headers=headers, timeout=idle)
        try:
            last = await ask(clients[key], command)
        except Exception as error:  # noqa: BLE001 - what a call raises must not end the driver
            last = {"error": described(error)}
        write({"id": command["id"], **last})


if __name__ == "__main__":
    asyncio.run(main())  # noqa: TID251 - a program of its own, which ends with its input
