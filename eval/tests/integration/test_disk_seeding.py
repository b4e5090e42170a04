"""The shared brain of a replay gets in by disk and a restart, and is proven like any other."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memconform.client.client import ContractClient
from memconform.contract.core import SearchRequest
from memconform.contract.wire import Mode
from memconform.daemons.manifest import Manifest, Seed, load_manifest
from memconform.daemons.manifest_runner import ManifestRunner
from memconform.daemons.sdk_runner import Launch
from memconform.datasets.conversations import Conversation, Session, Turn
from memconform.errors import DaemonError
from memconform.ingest.documents import Document, InMemoryCorpus
from memconform.ingest.seeding import SeededBrain, seeded_brain
from memconform.replay.documents import Fact, SharedBrain, fact_documents, session_document
from tests.conftest import CHECKOUT, WAIT_SECONDS
from tests.fakes.foreign import DIALECT


def _documents() -> list[Document]:
    """Two dates of one session, and three facts of it, all with front matter."""
    brain = SharedBrain()
    for day, text in (
        ("2023/05/30 (Tue) 23:40", "I bought nine hives in Brel."),
        ("2023/06/01 (Thu) 08:00", "My ferry leaves at seven."),
    ):
        session = Session("answer_a", day, (Turn("t", "user", text, by_user=True),))
        brain.add(Conversation(day, (session,)))
    placed = list(brain.sessions.values())
    texts = ("The user keeps bees.", "The user lives near Brel.", "The user fears heights.")
    facts = [Fact(text, "2023-05-30", ("life",)) for text in texts]
    return [*map(session_document, placed), *fact_documents(placed[0], facts, "lme")]


@asynccontextmanager
async def _seeded(
    manifest: Manifest, folder: Path, state: Path
) -> AsyncIterator[tuple[SeededBrain, ContractClient]]:
    runner = ManifestRunner(manifest, folder)
    await runner.build(lambda *_: None)
    launch = Launch(run_id=f"disk-{state.name}", folder=state)
    async with (
        runner.serve(launch) as daemon,
        ContractClient(daemon.base_url, dialect=runner.dialect) as client,
        seeded_brain(
            client, runner, daemon, "mc-disk", InMemoryCorpus(_documents()), [Mode.BM25]
        ) as seeded,
    ):
        yield seeded, client


def _reference(sdk: str) -> tuple[Manifest, Path]:
    folder = CHECKOUT / "sdks" / sdk
    manifest = load_manifest(folder / "sdk.toml")
    return manifest.model_copy(update={"seed": Seed(via="disk", restart=True)}), folder


async def test_a_shared_brain_on_disk_is_proven_after_a_restart(sdk: str, tmp_path: Path) -> None:
    async with _seeded(*_reference(sdk), tmp_path) as (seeded, client):
        assert (seeded.record.documents, seeded.counts.documents) == (5, 5)
        answer, _ = await client.search("mc-disk", SearchRequest(query="bees", mode=Mode.BM25))
    [chunk] = answer.chunks
    assert (chunk.path, chunk.text.strip()) == (
        "memory/project/lme/answer_a-001.md",
        "The user keeps bees.",
    )


async def test_files_that_a_daemon_loses_at_its_start_are_counted(sdk: str, tmp_path: Path) -> None:
    manifest, folder = _reference(sdk)
    losing = 'find "$JB_LOST" -name "*-003.md" -delete; exec "$0" "$@"'
    serve = manifest.serve.model_copy(update={"argv": ["sh", "-c", losing, *manifest.serve.argv]})
    state = tmp_path / "state"
    variables = manifest.env.set | {"JB_LOST": str(tmp_path)}
    env = manifest.env.model_copy(update={"set": variables})
    broken = manifest.model_copy(update={"serve": serve, "env": env})
    with pytest.raises(DaemonError) as raised:
        async with _seeded(broken, folder, state):
            pass
    assert raised.value.code == "index_incomplete"
    assert "5 documents were sent, but the brain counts 4" in raised.value.message


def _foreign(*arguments: str, timeout_s: float = WAIT_SECONDS) -> Manifest:
    """A daemon without counts, which indexes only when it starts."""
    argv = ["{python}", "-m", "tests.fakes.foreign", "--addr", "{addr}"]
    argv += ["--root", "{state_dir}", "--late", *arguments]
    seed = {"via": "disk", "folder": "stores/{brain}", "restart": True, "timeout_s": timeout_s}
    return Manifest.model_validate(
        {
            "name": "foreign",
            "language": "python",
            "dialect": DIALECT,
            "serve": {"argv": argv, "port": "announced"},
            "seed": seed,
            "capabilities": {"profiles": ["core"], "modes": ["bm25"]},
        }
    )


async def test_a_daemon_without_counts_is_proven_by_its_searches(tmp_path: Path) -> None:
    async with _seeded(_foreign(), tmp_path, tmp_path / "state") as (seeded, _):
        assert (seeded.record.documents, seeded.counts.chunks) == (5, None)


@pytest.mark.parametrize("lost", ["-003", "@20230601T0800"])
async def test_a_file_that_is_listed_but_was_not_indexed_at_the_start_is_found_out(
    lost: str, tmp_path: Path
) -> None:
    # short limit: what was skipped is never searchable.
    daemon = _foreign(f"--skip={lost}", timeout_s=1)
    with pytest.raises(DaemonError) as raised:
        async with _seeded(daemon, tmp_path, tmp_path / "state"):
            pass
    assert raised.value.code == "not_searchable"
    assert "does not find 1 of 5 ingested documents" in raised.value.message
