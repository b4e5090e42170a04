"""A small memory system behind an adapter, and a benchmark for it."""

import json
import sys
from pathlib import Path

_ADAPTER = """
import os
import pickle
import sys

users = {}
calls = []

def start(folder, settings):
    global mood, file
    mood, file = settings.get("mood", ""), folder / "file"
    if file.exists() and mood == "once":
        raise OSError("there is a file")
    if file.exists() and mood == "lasting":
        users.update(pickle.loads(file.read_bytes()))

def store(user, items):
    STORE
    users.setdefault(user, []).extend(items)
    file.write_bytes(pickle.dumps(users))

def finish(user):
    if mood == "unfinished":
        raise OSError("no space")

def forget(user):
    del users[user]
    if mood == "stubborn":
        raise OSError("cannot forget")

def search(user, query, k):
    words = set(query.lower().replace("?", "").split())
    ranked = sorted(users[user], key=lambda item: -len(words & set(item.text.lower().split())))
    hits = [(item.id, item.text, 1.0) for item in ranked[:k]]
    calls.append(query)
    SEARCH
    return hits
"""


_PROGRAM = """
import json
import sys

users = {}
for line in sys.stdin:
    call = json.loads(line)
    user, reply = call.get("user"), {"number": call["number"]}
    if call["call"] == "store":
        users.setdefault(user, []).extend(call["items"])
    elif call["call"] == "search":
        words = set(call["query"].lower().split())
        rank = lambda item: -len(words & set(item["text"].lower().split()))
        best = sorted(users[user], key=rank)[: call["k"]]
        reply["hits"] = [[item["id"], item["text"], None] for item in best]
        SEARCH
    print(json.dumps(reply), flush=True)
"""


def write_program(folder: Path, *, search: str = "pass") -> Path:
    """The same system as a program that reads calls as JSON lines; `search` changes a reply."""
    folder.mkdir(exist_ok=True)
    (folder / "adapter.txt").write_text(_PROGRAM.replace("SEARCH", search))
    manifest = 'name = "mine"\nversion = "1.0"\nlicence = "MIT"\nadapter = "adapter.txt"\n'
    manifest += f'command = [{json.dumps(sys.executable)}, "{{adapter}}"]\n'
    (folder / "system.toml").write_text(manifest)
    return folder


_SERVER = """
import json
import os
import sys

notes = []
if os.path.exists("notes"):
    notes = json.load(open("notes"))

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    call = json.loads(line)
    if "id" not in call or "method" not in call:
        print(line, os.environ.get("NOTES"), file=sys.stderr)
        continue
    params, result = call["params"], {}
    if call["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "n"}}
    elif params["name"] == "note":
        notes.append(params["arguments"]["note"])
        json.dump(notes, open("notes", "w"))
        say({"method": "notifications/progress"})
        say({"id": "mine", "method": "roots/list"})
    elif params["name"] == "find":
        words = set(params["arguments"]["words"].lower().split())
        assert isinstance(params["arguments"]["most"], int)
        best = sorted(notes, key=lambda note: -len(words & set(note["text"].lower().split())))
        found = {"found": {"notes": best[: params["arguments"]["most"]]}}
        result = {"content": [{"type": "text", "text": json.dumps(found)}]}
        SEARCH
    say({"id": call["id"], "result": result})
"""


def write_mcp(folder: Path, *, search: str = "pass", more: str = "") -> Path:
    """The same system as an MCP server; `search` changes the result of its search."""
    folder.mkdir(exist_ok=True)
    (folder / "server.py").write_text(_SERVER.replace("SEARCH", search))
    command = json.dumps(["{python}", str(folder / "server.py")])
    (folder / "system.toml").write_text(
        'name = "mine"\nversion = "1.0"\nlicence = "MIT"\n'
        f"[mcp]\ncommand = {command}\n"
        '[mcp.store]\ntool = "note"\n'
        'arguments = { note = { key = "{id}", text = "{text}" } }\n'
        '[mcp.search]\ntool = "find"\narguments = { words = "{query}", most = "{k}" }\n'
        f'hits = "found.notes"\nid = "key"\n{more}'
    )
    return folder


def write_boxes(folder: Path, users: int = 2) -> Path:
    """Twelve items in two haystacks, or more; the third word of a question is in one item."""
    items = [
        {"id": f"i{n}", "content": f"the secret of box{n} is word{n}x", "group": f"g{n % users}"}
        for n in range(12)
    ]
    questions = [
        {"query": f"What is box{n} ?", "gold": [f"i{n}"], "group": f"g{n % users}", "category": "c"}
        for n in range(12)
    ]
    path = folder / "boxes.json"
    path.write_text(json.dumps({"name": "boxes", "items": items, "questions": questions}))
    return path


def write_system(
    folder: Path, *, store: str = "pass", search: str = "pass", more: str = ""
) -> Path:
    folder.mkdir(exist_ok=True)
    code = _ADAPTER.replace("STORE", store).replace("SEARCH", search)
    (folder / "adapter.py").write_text(code)
    manifest = f'name = "mine"\nversion = "1.0"\nlicence = "MIT"\n{more}'
    (folder / "system.toml").write_text(manifest)
    return folder
