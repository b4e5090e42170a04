"""Measure the cost of index proofs, alternating between runs with and without them.

    python scripts/bench_proof.py [--sdk go]

Proofs and repetitions between questions are reported as extra time relative to --no-reverify; the
proof after seeding, which both runs make, in seconds.
"""

import argparse
import asyncio
import json
import random
import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path

from memconform.client.client import ContractClient
from memconform.contract.wire import Mode
from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import Launch, SdkRunner
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.datasets.selection import Selection, select
from memconform.ingest.documents import CorpusFolder, ReferenceAnswers
from memconform.ingest.seeding import seeded_brain
from memconform.printing.logs import configure_logs
from memconform.runs.plan import Floor, Plan, Settings
from memconform.runs.schedule import execute
from memconform.scoring.exact import ExactScorer
from reporting import missed, report

_CHECKOUT = Path(__file__).resolve().parents[1]
_DOCUMENTS = 10_000
_QUESTIONS = 1_000
_ROUNDS = 3


def _write_dataset(folder: Path) -> Path:
    """Write questions over many documents, with word frequencies like those of a language."""
    draw = random.Random(7)  # noqa: S311 - not for secrets
    letters = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]
    words = ["".join(draw.choices(letters, k=draw.randint(2, 5))) for _ in range(20_000)]
    weights = [1 / (rank + 5) for rank in range(len(words))]
    path = folder / "many.jsonl"
    with path.open("w") as file:
        for number in range(_DOCUMENTS):
            text = " ".join(draw.choices(words, weights, k=120))
            hint = " ".join(draw.choices(words[:200], k=4))
            row = {
                "id": f"q{number}",
                "question": f"What is the secret of box{number} {hint}?",
                "expected_substrings": [f"word{number}x"],
                "reference_answer": f"{text}. The secret of box{number} is word{number}x.",
            }
            file.write(json.dumps(row) + "\n")
    return path


async def _seconds(runner: SdkRunner, dataset: str, folder: Path, *, reverify: bool) -> float:
    opened = open_dataset(dataset)
    selected = select(opened, Selection(limit=_QUESTIONS))
    folder_of_corpus = corpus_of(opened)
    corpus = CorpusFolder(folder_of_corpus) if folder_of_corpus else ReferenceAnswers(opened)
    plan = Plan(
        settings=Settings(
            dataset=opened.name,
            dataset_sha256=opened.sha256,
            questions=selected.size,
            rows=None if selected.rows is None else sorted(selected.rows),
            scenario="search-retrieve-only",
            mode=Mode.BM25,
            seeding=corpus.identity,
        ),
        selected=selected,
        output=folder / secrets.token_hex(4),
        floors=(Floor(0.0),),
        scorer=ExactScorer(),
        corpus=corpus,
        reverify=reverify,
    )
    started = time.perf_counter()
    async for _ in execute(plan, runner):
        pass
    return time.perf_counter() - started


async def _seeding_times(runner: SdkRunner, dataset: Path, folder: Path) -> tuple[float, float]:
    """Return the seconds of seeding without and with its proof."""
    launch = Launch(run_id=f"bench-proof-{secrets.token_hex(4)}", folder=folder)
    async with runner.serve(launch) as daemon, ContractClient(daemon.base_url) as client:
        started = time.perf_counter()
        corpus = ReferenceAnswers(open_dataset(str(dataset)))
        async with seeded_brain(client, runner, daemon, "b", corpus, [Mode.BM25]) as seeded:
            whole = time.perf_counter() - started
            started = time.perf_counter()
            await seeded.prover.prove_all()
            proof = time.perf_counter() - started
    return whole - proof, whole


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sdk", default="go")
    runner = find_runner(parser.parse_args().sdk, _CHECKOUT)
    configure_logs("error")
    await runner.build(print)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dataset_path = _write_dataset(folder)
        for label, dataset, limit in (
            ("lme", "lme", 25),
            ("10,000 documents", str(dataset_path), 5),
        ):
            ratios = []
            for _ in range(_ROUNDS):
                with_, without = [
                    await _seconds(runner, dataset, folder, reverify=reverify)
                    for reverify in (True, False)
                ]
                ratios.append(100 * (with_ / without - 1))
            figure = f"{label}: wall time added by proofs between questions"
            report(figure, statistics.median(ratios), "%", limit=limit)
        bare, whole = await _seeding_times(runner, dataset_path, folder)
        print(f"  {'10,000 documents: seeding without its proof':<58} {bare:>9.2f} s")
        report("10,000 documents: the proof after seeding", whole - bare, "s", limit=3)
    return 1 if missed() else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
