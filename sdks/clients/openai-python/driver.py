"""Drives the package openai for `memconform client`; sdks/DRIVER.md describes the lines."""

import asyncio
import json
import sys
from typing import Any

import openai

# `timeout` is that of each read, so it is a limit of silence; there is none for a whole call.
CLAIMS = ["ask", "token", "idle", "cancel", "retry"]


def write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def call(client: openai.AsyncOpenAI, command: dict[str, Any]) -> dict[str, Any]:
    """Ask for a completion; the last line of it, without its id."""
    count = 0
    message = {"role": "user", "content": command["body"]["question"]}
    async with await client.chat.completions.create(
        model="scripted", messages=[message], stream=True
    ) as chunks:
        async for chunk in chunks:
            for text in (choice.delta.content for choice in chunk.choices):
                if text:
                    write({"id": command["id"], "event": "answer_delta", "data": {"text": text}})
                    count += 1
                    if count == command["cancelAfter"]:
                        return {"cancelled": True}
    return {"ok": None}


def described(error: Exception) -> dict[str, Any]:
    """An error in the words of the contract."""
    kind = "unknown"
    match error:
        case openai.APITimeoutError():
            kind = "timeout"
        case openai.APIConnectionError():
            kind = "connection"
        case openai.APIStatusError():
            kind = "http"
        case openai.APIResponseValidationError() | ValueError():
            kind = "protocol"
        case openai.APIError():
            kind = "daemon"  # an error within the stream
    status, code = getattr(error, "status_code", None), getattr(error, "code", None)
    return {"kind": kind, "status": status, "code": code, "message": repr(error)}


async def main() -> None:
    version = openai.__version__
    write({"driver": f"openai {version}", "protocol": 1, "claims": CLAIMS, "wire": "openai"})
    clients: dict[str, openai.AsyncOpenAI] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        settings = {
            "base_url": command["baseUrl"] + "/v1",
            "api_key": command["token"] or "none",
            "timeout": command["idleMs"] / 1e3,
            "max_retries": command["retries"],
        }
        key = json.dumps(settings)
        if key not in clients:
            clients[key] = openai.AsyncOpenAI(**settings)
        try:
            last = await call(clients[key], command)
        except Exception as error:  # noqa: BLE001 - what a call raises must not end the driver
            last = {"error": described(error)}
        write({"id": command["id"], **last})


if __name__ == "__main__":
    asyncio.run(main())  # noqa: TID251 - a program of its own, which ends with its input
