"""Runs a user's WMB-100K adapter; started by `adapter.py` as a process of its own.

    python adapter_child.py SOCKET FILE

It imports nothing of memconform, so that it runs with whatever the adapter brings. Requests and
replies are JSON lines on a Unix socket: what the adapter prints goes to its log and is never taken
for a reply.
"""

import importlib.util
import inspect
import json
import os
import queue
import socket
import sys
import threading
import traceback
from time import perf_counter
from typing import Any

_LOAD, _STORE, _SEARCH = "load", "store", "search"


def _read(connection: socket.socket, requests: "queue.SimpleQueue[bytes]") -> None:
    """Queue requests until the harness is gone; then end, whatever the adapter is doing."""
    with connection.makefile("rb") as lines:
        for line in lines:
            requests.put(line)
    os._exit(0)


def _load(path: str) -> Any:  # noqa: ANN401 - a module whose attributes are the user's
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
    missing = [name for name in (_STORE, _SEARCH) if not callable(getattr(module, name, None))]
    if missing:
        raise ImportError(f"it has no function {' and no function '.join(missing)}")
    for name in (_STORE, _SEARCH):
        if inspect.iscoroutinefunction(getattr(module, name)):
            raise TypeError(f"{name} is async, and nothing would await it")
    return module


def _store(module: Any, user_id: str, content: str) -> dict[str, Any]:  # noqa: ANN401 - as _load
    result = module.store(user_id, content)
    if inspect.isawaitable(result):
        return _wrong("store returned an awaitable, which nothing awaits; it must not be async")
    return {}


def _search(module: Any, user_ids: list[str], query: str) -> dict[str, Any]:  # noqa: ANN401 - as _load
    """Search each user's memories; milliseconds are those of the calls alone."""
    memories: dict[str, None] = {}
    took = 0.0
    for user_id in user_ids:
        started = perf_counter()
        found = module.search(user_id, query)
        took += perf_counter() - started
        if inspect.isawaitable(found):
            return _wrong("search returned an awaitable, which nothing awaits; no async function")
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            return _wrong(f"search must return a list of str, not {repr(found)[:80]}")
        try:
            "".join(found).encode()
        except UnicodeEncodeError:
            return _wrong("search returned a text with an unpaired surrogate")
        # A question across two categories searches both, as the benchmark's template does.
        memories.update(dict.fromkeys(found))
    texts = list(memories) if len(user_ids) > 1 else found
    return {"memories": texts, "took_ms": took * 1_000}


def _wrong(message: str) -> dict[str, Any]:
    return {"error": "adapter_wrong_type", "message": message}


def main() -> None:
    """Answer requests until the harness closes the socket."""
    address, path = sys.argv[1:]
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(connection, requests), daemon=True).start()
    module: Any = None
    own = os.getpid()
    while True:
        number, verb, *arguments = json.loads(requests.get())
        try:
            if verb == _LOAD:
                module = _load(path)
                reply: dict[str, Any] = {}
            elif verb == _STORE:
                reply = _store(module, *arguments)
            else:
                reply = _search(module, *arguments)
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
