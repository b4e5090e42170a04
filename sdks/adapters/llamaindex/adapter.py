"""LlamaIndex's VectorStoreIndex, one for each user; a service makes the vectors."""

import json
import shutil
import urllib.request

from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode


class _Embedding(BaseEmbedding):
    url: str

    def _get_text_embeddings(self, texts):
        body = json.dumps({"model": self.model_name, "input": texts}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as response:
            return [row["embedding"] for row in json.load(response)["data"]]

    def _get_text_embedding(self, text):
        return self._get_text_embeddings([text])[0]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        return self._get_text_embedding(query)


def start(folder, settings):
    global _folder, _embedding, _indices
    _folder, _indices = folder, {}
    _embedding = _Embedding(model_name=settings["model"], url=settings["url"], embed_batch_size=50)


def _index(user):
    if user not in _indices:
        if _path(user).is_dir():
            context = StorageContext.from_defaults(persist_dir=str(_path(user)))
            _indices[user] = load_index_from_storage(context, embed_model=_embedding)
        else:
            _indices[user] = VectorStoreIndex([], embed_model=_embedding)
    return _indices[user]


def _path(user):
    return _folder / user.encode().hex()


def store(user, items):
    _index(user).insert_nodes([TextNode(id_=item.id, text=item.text) for item in items])


def finish(user):
    _index(user).storage_context.persist(str(_path(user)))


def search(user, query, k):
    found = _index(user).as_retriever(similarity_top_k=k).retrieve(query)
    return [(hit.node.node_id, hit.node.text, hit.score) for hit in found]


def forget(user):
    _indices.pop(user, None)
    shutil.rmtree(_path(user))
