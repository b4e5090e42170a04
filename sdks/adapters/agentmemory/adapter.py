"""agentmemory, one category for each user."""

import hashlib
import json
import urllib.request

import agentmemory
import agentmemory.client
from agentmemory.chroma_client import ChromaCollectionMemory, ChromaMemory


def start(folder, settings):
    def vectors(input):  # noqa: A002 - as Chroma calls it
        body = json.dumps({"model": settings["model"], "input": input}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(settings["url"], body, headers)
        with urllib.request.urlopen(request) as response:
            return [row["embedding"] for row in json.load(response)["data"]]

    class Memory(ChromaMemory):
        def get_or_create_collection(self, category, metadata=None):
            found = self.chroma.get_or_create_collection(category, embedding_function=vectors)
            return ChromaCollectionMemory(found, metadata)

    agentmemory.client.client = Memory(str(folder / "memory"))


def _category(user):
    return hashlib.sha224(user.encode()).hexdigest()  # Chroma allows 63 characters


def store(user, items):
    for item in items:
        agentmemory.create_memory(_category(user), item.text, metadata={}, id=item.id)


def search(user, query, k):
    found = agentmemory.search_memory(_category(user), query, n_results=k)
    return [(hit["id"], hit["document"], -hit["distance"]) for hit in found]


def forget(user):
    agentmemory.wipe_category(_category(user))
