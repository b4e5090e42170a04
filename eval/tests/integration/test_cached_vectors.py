"""A daemon may cache the vectors of texts that it has embedded (upstream.embeddings)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memconform.conformance.catalog import catalog
from tests.conftest import CHECKOUT, Ended

_CACHING = """
from memoryd.cli import main
from memoryd.embed.openai import OpenAIEmbedder

cache = {}
uncached = OpenAIEmbedder.embed


def embed(self, texts):
    missing = [text for text in dict.fromkeys(texts) if (self.name, text) not in cache]
    if missing:
        for text, vector in zip(missing, uncached(self, missing), strict=True):
            cache[self.name, text] = vector
    return [cache[self.name, text] for text in texts]


OpenAIEmbedder.embed = embed
raise SystemExit(main())
"""


# 44 s of CPU: a change of the cases themselves, which comes by day, fails it at the next night.
@pytest.mark.slow
def test_the_cases_of_embedders_accept_a_daemon_that_caches_vectors(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    daemon = workspace / "caching.py"
    daemon.write_text(_CACHING)
    argv = ["{python}", str(daemon), "serve", "--addr", "{addr}", "--root", "{state_dir}"]
    manifest = (CHECKOUT / "sdks" / "py" / "sdk.toml").read_text(encoding="utf-8")
    upstream = manifest[manifest.index("[upstream]") :]
    path = workspace / "sdk.toml"
    path.write_text(
        f'name = "caching"\nlanguage = "python"\n[serve]\nargv = {json.dumps(argv)}\n'
        f'port = "announced"\n[env]\nset = {{ PYTHONPATH = "{CHECKOUT / "sdks" / "py" / "src"}",'
        f' JB_LLM_PROVIDER = "fake", JB_EMBED_PROVIDER = "fake" }}\n{upstream}'
    )
    # Two cases that share a text with one of these fail too: all of them share one daemon.
    bases = {entry.base for entry in catalog() if '"embeddings"' in entry.case.model_dump_json()}
    assert {
        "ask-embedder-fails",
        "events-embedder-fails",
        "vector-kernel",
        "upstream-retry",
    } <= bases
    cases = [flag for base in sorted({*bases, "rank-rerank-default"}) for flag in ("--case", base)]
    ended = memconform("conform", "--sdk", path, *cases, "--json", "c.json")
    report = json.loads((workspace / "c.json").read_text(encoding="utf-8"))
    results = {
        check["id"]: check["result"]
        for case in report["sdks"][0]["cases"]
        for check in case["checks"]
    }
    assert {id_: result for id_, result in results.items() if result != "pass"} == {}, ended.err
    assert len(results) > 100
    assert ended.code == 0
