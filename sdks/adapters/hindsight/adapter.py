"""Hindsight, one bank for each user."""

import asyncio
import threading
from datetime import datetime

from hindsight_api import MemoryEngine, RequestContext

_loop = asyncio.new_event_loop()


def _run(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, _loop).result()


def start(folder, settings):
    global _engine
    threading.Thread(target=_loop.run_forever, daemon=True).start()
    _engine = MemoryEngine()
    _run(_engine.initialize())


def store(user, items):
    contents = [
        {
            "content": item.text,
            "document_id": item.id,
            # None is "not known"; without the key it would take the time of this call.
            "event_date": datetime.fromisoformat(item.date) if item.date else None,
        }
        for item in items
    ]
    _run(_engine.retain_batch_async(user, contents, request_context=RequestContext()))


def search(user, query, k):
    context = RequestContext()
    found = _run(_engine.recall_async(user, query, max_tokens=1_000 * k, request_context=context))
    return [(hit.document_id, hit.text, None) for hit in found.results[:k]]


def forget(user):
    _run(_engine.delete_bank(user, request_context=RequestContext()))
