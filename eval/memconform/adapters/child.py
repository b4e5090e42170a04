"""Runs an adapter; started by `connection.py` as a process of its own.

    python child.py SOCKET

It imports nothing of memconform, so that it runs with whatever the adapter brings. Requests and
replies are JSON lines on a Unix socket: what the adapter prints goes to its log and is never taken
for a reply.

There are three forms of adapters: a module with the functions of docs/SYSTEMS.md, a program in any
language that has them as JSON lines, and a module as for WMB-100K: `store(user_id, content)` and
`search(user_id, query)`, which say nothing of ids.
"""

import importlib.util
import inspect
import json
import os
import pathlib
import queue
import socket
import subprocess
import sys
import threading
import traceback
from collections import namedtuple
from contextlib import suppress
from time import perf_counter
from typing import Any

Item = namedtuple("Item", "id text speaker session date")  # noqa: PYI024 - the interpreter may be any

_MAX_REPLY_BYTES = 256 << 20
"""Longest line that a program may reply with."""
_NEEDED = ("store", "search")
_OPTIONAL = ("start", "finish", "forget")


def _read(connection: socket.socket, requests: "queue.SimpleQueue[bytes]") -> None:
    """Queue requests until the harness is gone; then end, whatever the adapter is doing."""
    with connection.makefile("rb") as lines:
        for line in lines:
            requests.put(line)
    os._exit(0)


def _load_module(path: str) -> Any:  # noqa: ANN401 - a module whose attributes are the user's
    sys.argv = [path]
    own = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as `python FILE` does
    # An adapter's `import records` must not find memconform's.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own]  # noqa: PTH100
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120
    spec = importlib.util.spec_from_file_location("wmb_adapter", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["wmb_adapter"] = module
    spec.loader.exec_module(module)
    missing = [name for name in _NEEDED if not callable(getattr(module, name, None))]
    if missing:
        raise ImportError(f"it has no function {' and no function '.join(missing)}")
    for name in (*_NEEDED, *_OPTIONAL):
        if inspect.iscoroutinefunction(getattr(module, name, None)):
            raise TypeError(f"{name} is async, and nothing would await it")
    return module


def _load(form: str, command: list[str]) -> Any:  # noqa: ANN401 - one of the forms
    """Load an adapter: a module's path, or the command of a program."""
    if form == "lines":
        return _LinesForm(command)
    [path] = command
    return {"wmb": _WmbForm, "system": _SystemForm}[form](_load_module(path))


class _WmbForm:
    """`store(user_id, content)`, `search(user_id, query)`: a list of texts."""

    def __init__(self, module: Any) -> None:  # noqa: ANN401 - as _load_module
        self.module = module

    def store(self, user_id: str, content: str) -> dict[str, Any]:
        result = self.module.store(user_id, content)
        if inspect.isawaitable(result):
            return _wrong("store returned an awaitable, which nothing awaits; it must not be async")
        return {}

    def search(self, user_ids: list[str], query: str) -> dict[str, Any]:
        """Search each user's memories; milliseconds are those of the calls alone."""
        memories: dict[str, None] = {}
        took = 0.0
        for user_id in user_ids:
            started = perf_counter()
            found = self.module.search(user_id, query)
            took += perf_counter() - started
            if inspect.isawaitable(found):
                return _wrong("search returned an awaitable, which nothing awaits")
            if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
                return _wrong(f"search must return a list of str, not {repr(found)[:80]}")
            if any(map(_is_half, found)):
                return _wrong("search returned a text with an unpaired surrogate")
            # A question across two categories searches both, as the benchmark's template does.
            memories.update(dict.fromkeys(found))
        texts = list(memories) if len(user_ids) > 1 else found
        return {"memories": texts, "took_ms": took * 1_000}


class _SystemForm:
    """The form of memconform: items and hits have ids, and a user can be forgotten."""

    def __init__(self, module: Any) -> None:  # noqa: ANN401 - as _load_module
        self.module = module

    def start(self, folder: str, settings: dict[str, str]) -> dict[str, Any]:
        return self._call("start", pathlib.Path(folder), settings)

    def store(self, user: str, items: list[list[str]]) -> dict[str, Any]:
        return self._call("store", user, [Item(*each) for each in items])

    def finish(self, user: str) -> dict[str, Any]:
        return self._call("finish", user)

    def forget(self, user: str) -> dict[str, Any]:
        return self._call("forget", user)

    def search(self, user: str, query: str, k: int) -> dict[str, Any]:
        started = perf_counter()
        found = self.module.search(user, query, k)
        took = (perf_counter() - started) * 1_000
        if inspect.isawaitable(found):
            return _wrong("search returned an awaitable, which nothing awaits")
        return _hits(found, took)

    def _call(self, name: str, *arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - a user's function
        function = getattr(self.module, name, None)
        if function is not None and inspect.isawaitable(function(*arguments)):
            return _wrong(f"{name} returned an awaitable, which nothing awaits")
        return {}


class _LinesForm:
    """A program in any language: a call is a JSON line on its stdin, the reply one on stdout."""

    def __init__(self, command: list[str]) -> None:
        # Its stderr is the log.
        self.program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.calls = 0

    def start(self, folder: str, settings: dict[str, str]) -> dict[str, Any]:
        return self._call("start", folder=folder, settings=settings)

    def store(self, user: str, items: list[list[str]]) -> dict[str, Any]:
        return self._call("store", user=user, items=[Item(*each)._asdict() for each in items])

    def finish(self, user: str) -> dict[str, Any]:
        return self._call("finish", user=user)

    def forget(self, user: str) -> dict[str, Any]:
        return self._call("forget", user=user)

    def search(self, user: str, query: str, k: int) -> dict[str, Any]:
        started = perf_counter()
        reply = self._call("search", user=user, query=query, k=k)
        took = (perf_counter() - started) * 1_000
        return reply if "error" in reply else _hits(reply.get("hits"), took)

    def _call(self, name: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        if self.program.stdin is None or self.program.stdout is None:
            raise RuntimeError("the program has no streams")
        self.calls += 1
        call = {"number": self.calls, "call": name, **arguments}
        with suppress(BrokenPipeError):  # the end of its stdout tells
            self.program.stdin.write(json.dumps(call).encode() + b"\n")
            self.program.stdin.flush()
        line = self.program.stdout.readline(_MAX_REPLY_BYTES)
        if not line:
            code = self.program.wait()
            return {"error": "adapter_died", "message": f"the program ended with exit code {code}"}
        try:
            reply = json.loads(line)
        except ValueError:
            return _out_of_step(f"a line on stdout is not a reply: {repr(line)[1:80]}")
        if not isinstance(reply, dict) or reply.get("number") != self.calls:
            # Of an earlier call, its hits would count for this question.
            return _out_of_step(f"not the reply to call {self.calls}: {repr(line)[1:80]}")
        if (error := reply.pop("error", None)) is not None:
            return {"error": f"adapter_{name}_failed", "message": str(error)[:400]}
        del reply["number"]
        return reply


def _hits(found: Any, took_ms: float) -> dict[str, Any]:  # noqa: ANN401 - whatever an adapter returns
    """The reply to a search."""
    if not isinstance(found, (list, tuple)):
        return _wrong(f"search must return a list of hits, not {repr(found)[:80]}")
    hits = []
    for each in found:
        fault = _fault(each)
        if fault:
            return _wrong(f"{fault}: {repr(each)[:80]}")
        identifier, text, score = each
        hits.append([identifier, text, None if score is None else float(score)])
    return {"hits": hits, "took_ms": took_ms}


def _fault(hit: Any) -> str:  # noqa: ANN401 - whatever an adapter returns
    """What is wrong with a hit; empty if nothing is."""
    if not isinstance(hit, (list, tuple)) or len(hit) != 3:
        return "a hit must be (id or None, text, score or None)"
    identifier, text, score = hit
    if not isinstance(text, str) or not (identifier is None or isinstance(identifier, str)):
        return "the text of a hit must be a str, and its id a str or None"
    if _is_half(text) or (identifier and _is_half(identifier)):
        return "a hit has an unpaired surrogate"
    try:
        number = 0.0 if score is None else float(score)
    except (TypeError, ValueError):
        number = None
    if number is None or isinstance(score, str):
        return "the score of a hit must be a number, or None"
    return "" if number - number == 0 else "the score of a hit must be finite"


def _is_half(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _out_of_step(message: str) -> dict[str, Any]:
    return {"error": "adapter_out_of_step", "message": message}


def _wrong(message: str) -> dict[str, Any]:
    return {"error": "adapter_wrong_type", "message": message}


def main() -> None:
    """Answer requests until the harness closes the socket."""
    [address] = sys.argv[1:]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, requests), daemon=True).start()
    adapter: Any = None
    own = os.getpid()
    while True:
        number, verb, *arguments = json.loads(requests.get())
        try:
            if verb == "load":
                form, command = arguments
                adapter = _load(form, command)
                reply: dict[str, Any] = {}
            else:
                reply = getattr(adapter, verb)(*arguments)
        except BaseException as error:  # noqa: BLE001 - the adapter may raise anything, SystemExit too
            traceback.print_exc()
            message = "".join(traceback.format_exception_only(error)).strip()[-400:]
            # No output can hold an unpaired surrogate.
            message = message.encode("utf-8", "backslashreplace").decode()
            reply = {"error": f"adapter_{verb}_failed", "message": message}
        if os.getpid() != own:
            # A fork of the adapter's that came back from the call: the first process replies.
            os._exit(0)
        connection.sendall(json.dumps({"number": number, **reply}).encode() + b"\n")


if __name__ == "__main__":
    main()
