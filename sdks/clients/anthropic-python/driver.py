"""Drives the package anthropic for `memconform client`; sdks/DRIVER.md describes the lines."""

import asyncio
import json
import sys
from typing import Any

import anthropic
import httpx2

# `timeout` is that of each read, so it is a limit of silence; there is none for a whole call.
CLAIMS = ["ask", "token", "idle", "cancel", "retry"]


def write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def call(client: anthropic.AsyncAnthropic, command: dict[str, Any]) -> dict[str, Any]:
    """Ask for a message; the last line of it, without its id."""
    count = 0
    message = {"role": "user", "content": command["body"]["question"]}
    async with await client.messages.create(
        model="scripted", max_tokens=64, messages=[message], stream=True
    ) as events:
        async for event in events:
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                data = {"text": event.delta.text}
                write({"id": command["id"], "event": "answer_delta", "data": data})
                count += 1
                if count == command["cancelAfter"]:
                    return {"cancelled": True}
    return {"ok": None}


def described(error: Exception) -> dict[str, Any]:
    """An error in the words of the contract."""
    kind = "unknown"
    match error:
        # Errors of httpx2 come as they are once a stream has begun.
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            kind = "timeout"
        case anthropic.APIConnectionError() | httpx2.TransportError():
            kind = "connection"
        # An error within the stream has the status of the response, which is 200.
        case anthropic.APIStatusError() if error.status_code < 300:
            kind = "daemon"
        case anthropic.APIStatusError():
            kind = "http"
        case anthropic.APIResponseValidationError() | ValueError():
            kind = "protocol"
    status = getattr(error, "status_code", None)
    return {"kind": kind, "status": status, "message": repr(error)}


async def main() -> None:
    version = anthropic.__version__
    write({"driver": f"anthropic {version}", "protocol": 1, "claims": CLAIMS, "wire": "anthropic"})
    clients: dict[str, anthropic.AsyncAnthropic] = {}
    while line := await asyncio.to_thread(sys.stdin.readline):
        command = json.loads(line)
        settings = {
            "base_url": command["baseUrl"],
            "api_key": command["token"] or "none",
            "timeout": command["idleMs"] / 1e3,
            "max_retries": command["retries"],
        }
        key = json.dumps(settings)
        if key not in clients:
            clients[key] = anthropic.AsyncAnthropic(**settings)
        try:
            last = await call(clients[key], command)
        except Exception as error:  # noqa: BLE001 - what a call raises must not end the driver
            last = {"error": described(error)}
        write({"id": command["id"], **last})


if __name__ == "__main__":
    asyncio.run(main())  # noqa: TID251 - a program of its own, which ends with its input
