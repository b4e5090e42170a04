"""FAISS with a flat index, one for each user; a service makes the vectors."""

import json
import urllib.request

import faiss
import numpy as np


def start(folder, settings):
    global _folder, _settings, _users
    _folder, _settings, _users = folder, settings, {}


def _vectors(texts):
    body = json.dumps({"model": _settings["model"], "input": texts}).encode()
    request = urllib.request.Request(_settings["url"], body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        rows = json.load(response)["data"]
    vectors = np.array([row["embedding"] for row in rows], dtype="float32")
    faiss.normalize_L2(vectors)
    return vectors


def _paths(user):
    name = user.encode().hex()
    return _folder / f"{name}.faiss", _folder / f"{name}.json"


def store(user, items):
    vectors = _vectors([item.text for item in items])
    index, texts = _users.setdefault(user, (faiss.IndexFlatIP(vectors.shape[1]), []))
    index.add(vectors)
    texts.extend((item.id, item.text) for item in items)


def finish(user):
    index, texts = _users[user]
    file, names = _paths(user)
    faiss.write_index(index, str(file))
    names.write_text(json.dumps(texts))


def search(user, query, k):
    if user not in _users:
        file, names = _paths(user)
        _users[user] = faiss.read_index(str(file)), json.loads(names.read_text())
    index, texts = _users[user]
    scores, rows = index.search(_vectors([query]), min(k, len(texts)))
    return [(*texts[row], score) for score, row in zip(scores[0], rows[0])]


def forget(user):
    _users.pop(user, None)
    for path in _paths(user):
        path.unlink()
