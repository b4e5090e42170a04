"""Drives the client for `memconform client`; sdks/DRIVER.md describes the lines."""

import asyncio
import json
import sys
from contextlib import aclosing
from typing import Any

from memory_client import CallError, MemoryClient

CLAIMS = ["ask", "search", "ingest", "token", "idle", "deadline", "cancel", "retry"]


def write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def call(client: MemoryClient, command: dict[str, Any]) -> dict[str, Any]:
    """Make a call; the last line of it, without its id."""
    brain, body = command["brain"], command["body"]
    if command["call"] == "search":
        return {"ok": await client.search(brain, body)}
    if command["call"] == "ingest":
        return {"ok": await client.ingest(brain, body)}
    count = 0
    async with aclosing(client.ask(brain, body)) as events:
        async for event in events:
            write({"id": command["id"], "event": event.name, "data": event.data})
            count += 1
            if count == command["cancelAfter"]:
                return {"cancelled": True}
    return {"ok": None}


async def main() -> None:
    write({"driver": "memory-py 1.0", "protocol": 1, "claims": CLAIMS})
    clients: dict[str, MemoryClient] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        settings = {
            "token": command["token"],
            "idle_timeout": command["idleMs"] / 1e3,
            "deadline": command["deadlineMs"] / 1e3,
            "retries": command["retries"],
        }
        key = json.dumps([command["baseUrl"], settings])
        try:
            if key not in clients:
                clients[key] = MemoryClient(command["baseUrl"], **settings)
            last = await call(clients[key], command)
        except CallError as error:
            last = {
                "error": {
                    "kind": error.kind,
                    "status": error.status,
                    "code": error.code,
                    "message": str(error),
                }
            }
        except Exception as error:  # noqa: BLE001 - what a call raises must not end the driver
            last = {"error": {"kind": "unknown", "message": repr(error)}}
        write({"id": command["id"], **last})


if __name__ == "__main__":
    asyncio.run(main())  # noqa: TID251 - a program of its own, which ends with its input
