"""Check that each trained embedding model embeds 60 short turns a second on a core.

    python scripts/bench_embedders.py [--texts N]

The texts are cut from the corpus of `lme`, 25 words each: as long as a turn of LoCoMo. The time is
that of the process on its processors, without the loading of the model; no vector is cached. A
model that is not installed is not measured.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from memconform.upstream.embedders import BGE, MINILM, get_embedder, served_models
from reporting import missed, report

_CORPUS = Path(__file__).resolve().parents[1] / "datasets" / "lme" / "corpus"
_WORDS = 25


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=500)
    count = parser.parse_args().texts
    files = sorted(path for path in _CORPUS.rglob("*") if path.is_file())
    words = [word for file in files for word in file.read_text(encoding="utf-8").split()]
    texts = [" ".join(words[n * _WORDS :][:_WORDS]) for n in range(count)]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MEMCONFORM_CACHE"] = cache
        for name in (each for each in (MINILM, BGE) if each in served_models()):
            embedder = get_embedder(name)
            embedder.embed(["a text that loads the model"])
            started = time.process_time()
            embedder.embed(texts)
            rate = count / (time.process_time() - started)
            report(f"{name}: turns embedded", rate, "/s", limit=60, least=True)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(main())
