"""Lets an MCP server answer the calls of an adapter: a program of JSON lines (docs/SYSTEMS.md).

It makes three requests of the Model Context Protocol over stdio (2025-06-18), which needs no client
library: the one for Python brings twenty packages. Each user has a server of its own, in a folder
of its own, because few servers know users. What a server writes to stderr is the log.

    python mcp_bridge.py TABLE          the [mcp] table of a system.toml, as JSON
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

_PROTOCOL = "2025-06-18"
_MAX_LINE_BYTES = 16 << 20


class ServerError(Exception):
    """The server cannot answer, or answers that it failed."""


class Server:
    """A server process, after its handshake."""

    def __init__(self, command: list[str], folder: pathlib.Path, env: Mapping[str, str]) -> None:
        folder.mkdir(exist_ok=True)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=folder,
            env={**os.environ, "HOME": str(folder), **env},
        )
        self._requests = 0
        client = {"name": "memconform", "version": "1"}
        hello = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client}
        self._request("initialize", hello)
        self._send({"method": "notifications/initialized"})

    def call(self, tool: str, arguments: object) -> Mapping[str, Any]:
        """The result of a tool; raises ServerError if it says that it failed."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise ServerError(f"{tool}: {' '.join(texts_of(result))[:400]}")
        return result

    def end(self) -> None:
        """End the process, which ends when its stdin does."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                # A line that a dead server did not take is written again.
                with suppress(OSError):
                    stream.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _request(self, method: str, params: object) -> Mapping[str, Any]:
        self._requests += 1
        self._send({"id": self._requests, "method": method, "params": params})
        for message in self._messages():
            if "method" in message:
                self._answer(message)
            elif message.get("id") == self._requests:
                if (error := message.get("error")) is not None:
                    text = error.get("message") if isinstance(error, dict) else error
                    raise ServerError(f"{method}: {text}")
                result = message.get("result")
                if not isinstance(result, dict):
                    raise ServerError(f"{method}: the reply has no result: {repr(message)[:80]}")
                return result
        raise ServerError(f"the server ended with exit code {self._process.wait()}")

    def _answer(self, message: Mapping[str, Any]) -> None:
        """Answer a request of the server's: a ping alone; a notification needs no answer."""
        if message["method"] == "ping":
            self._send({"id": message["id"], "result": {}})
        elif "id" in message:
            error = {"code": -32601, "message": "method not found"}
            self._send({"id": message["id"], "error": error})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode()
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ServerError(f"the server ended with exit code {self._process.wait()}") from None

    def _messages(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None  # noqa: S101 - it is a pipe
        while line := self._process.stdout.readline(_MAX_LINE_BYTES):
            try:
                message = json.loads(line)
            except ValueError:
                raise ServerError(
                    f"a line on stdout is not a message: {repr(line)[1:80]}"
                ) from None
            if isinstance(message, dict):
                yield message


class Bridge:
    """The servers of all users."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = table
        self._folder = pathlib.Path()
        self._servers: dict[str, Server] = {}

    def start(self, folder: str, settings: object) -> dict[str, Any]:
        """Remember the folder; servers are started when they are needed."""
        del settings
        self._folder = pathlib.Path(folder)
        return {}

    def store(self, user: str, items: list[dict[str, str]]) -> dict[str, Any]:
        """Call the storing tool once for each item."""
        tool = self._table["store"]
        server = self._server(user)
        for item in items:
            server.call(tool["tool"], filled(tool["arguments"], {**item, "user": user}))
        return {}

    def search(self, user: str, query: str, k: int) -> dict[str, Any]:
        """Call the searching tool, and take its hits apart."""
        tool = self._table["search"]
        arguments = filled(tool["arguments"], {"user": user, "query": query, "k": k})
        return {"hits": hits_of(self._server(user).call(tool["tool"], arguments), tool)[:k]}

    def forget(self, user: str) -> dict[str, Any]:
        """End the user's server, and delete its folder."""
        if (server := self._servers.pop(user, None)) is not None:
            server.end()
        if (folder := self._place(user)).exists():
            shutil.rmtree(folder)
        return {}

    def end(self) -> None:
        """End all servers; their folders stay."""
        for server in self._servers.values():
            server.end()

    def _server(self, user: str) -> Server:
        if user not in self._servers:
            folder = self._place(user)
            env = filled(self._table["env"], {"folder": str(folder)})
            self._servers[user] = Server(self._table["command"], folder, env)
        return self._servers[user]

    def _place(self, user: str) -> pathlib.Path:
        return self._folder / hashlib.sha256(user.encode()).hexdigest()[:16]


def filled(template: Any, values: Mapping[str, object]) -> Any:  # noqa: ANN401 - it is JSON
    """A template with `{name}` replaced; a text that is nothing else becomes the value itself."""
    if isinstance(template, dict):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    for name, value in values.items():
        if template == f"{{{name}}}":
            return value
    # In one pass: a text may contain what looks like a placeholder.
    parts = template.split("{")
    for at, part in enumerate(parts[1:], start=1):
        name, brace, rest = part.partition("}")
        parts[at] = f"{values[name]}{rest}" if brace and name in values else f"{{{part}"
    return "".join(parts)


def texts_of(result: Mapping[str, Any]) -> list[str]:
    """The texts of a result's content; raises ServerError if it has anything else."""
    blocks = result.get("content", [])
    if isinstance(blocks, list):
        texts = [block.get("text") if isinstance(block, dict) else None for block in blocks]
        if all(isinstance(text, str) for text in texts):
            return [str(text) for text in texts]
    raise ServerError(f"its content is not a list of texts: {repr(blocks)[:80]}")


def hits_of(result: Mapping[str, Any], tool: Mapping[str, Any]) -> list[list[Any]]:
    """Hits as an adapter returns them: id or None, text, score or None.

    Raises:
        ServerError: if the result has nothing at the path of the hits.
    """
    if tool["hits"] is None:
        return [[None, text, None] for text in texts_of(result)]
    whole = result.get("structuredContent")
    if whole is None:
        try:
            whole = json.loads("".join(texts_of(result)))
        except ValueError:
            raise ServerError("search: its content is not JSON, in which to find `hits`") from None
    found = at_path(whole, tool["hits"])
    if not isinstance(found, list):
        raise ServerError(f"search: no list at {tool['hits']!r} in {repr(whole)[:200]}")
    return [
        [None if tool[key] is None else at_path(each, tool[key]) for key in ("id", "text", "score")]
        for each in found
    ]


def at_path(value: Any, path: str) -> Any:  # noqa: ANN401 - it is JSON
    """The value at a path such as `a.0.b`, or None; an empty path is the value itself."""
    for key in filter(None, path.split(".")):
        if isinstance(value, list) and key.isdecimal():
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def main(table: str) -> None:
    """Answer calls until stdin ends."""
    bridge = Bridge(json.loads(table))
    for line in sys.stdin.buffer:
        call = json.loads(line)
        number, verb = call.pop("number"), call.pop("call")
        try:
            reply = {} if verb == "finish" else getattr(bridge, verb)(**call)
        except (ServerError, OSError) as error:
            reply = {"error": str(error)}
        sys.stdout.write(json.dumps({"number": number, **reply}) + "\n")
        sys.stdout.flush()
    bridge.end()


if __name__ == "__main__":
    main(sys.argv[1])
