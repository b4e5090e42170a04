"""The reference SDKs rank and answer alike, to the bit that the contract asks for."""

import asyncio
import base64
import json
import random
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from httpx_sse import EventSource

from memconform.daemons.discovery import find_runner
from memconform.daemons.sdk_runner import Launch
from memconform.datasets.registry import corpus_of, open_dataset
from memconform.datasets.selection import Selection, select
from memconform.ingest.documents import CorpusFolder, Document, ReferenceAnswers
from memconform.reports.machine import RunReport
from memconform.stats.rankings import SCORE_TOLERANCE
from tests.clients import client_of
from tests.conftest import CHECKOUT, Ended, runnable

_MODES = ("bm25", "semantic", "hybrid")
_BATCH = 128

Answer = tuple[list[tuple[str, float]], str]
"""Chunk ids with their scores, and what the reader said."""


@asynccontextmanager
async def _daemons(
    sdks: Sequence[str], folder: Path
) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    async with AsyncExitStack() as stack:
        clients = {}
        for sdk in sdks:
            runner = find_runner(sdk if "/" not in sdk else str(CHECKOUT / sdk), CHECKOUT)
            await runner.build(lambda _: None)
            own = folder / runner.name
            own.mkdir()
            launch = Launch(run_id=f"agreement-{secrets.token_hex(4)}", folder=own)
            daemon = await stack.enter_async_context(runner.serve(launch))
            clients[sdk] = await stack.enter_async_context(client_of(daemon.base_url))
        yield clients


async def _fill(
    http: httpx.AsyncClient, brain: str, documents: Sequence[Document], *, batch: bool = True
) -> None:
    (await http.post("/v1/brains", json={"brainId": brain})).raise_for_status()
    bodies = [
        {
            "path": document.path,
            "contentType": document.content_type,
            "contentBase64": base64.b64encode(document.content).decode(),
        }
        for document in documents
    ]
    if not batch:
        for body in bodies:
            (await http.post(f"/v1/brains/{brain}/ingest/file", json=body)).raise_for_status()
        return
    for start in range(0, len(bodies), _BATCH):
        part = {"documents": bodies[start : start + _BATCH]}
        answer = await http.post(f"/v1/brains/{brain}/ingest/batch", json=part)
        assert answer.status_code == 200, answer.text


async def _search(http: httpx.AsyncClient, brain: str, body: dict[str, Any]) -> Answer:
    answer = await http.post(f"/v1/brains/{brain}/search", json=body)
    assert answer.status_code == 200, answer.text
    return [(chunk["chunkId"], chunk["score"]) for chunk in answer.json()["chunks"]], ""


async def _ask(http: httpx.AsyncClient, brain: str, body: dict[str, Any]) -> Answer:
    async with http.stream("POST", f"/v1/brains/{brain}/ask", json=body) as response:
        events = [
            (event.event, json.loads(event.data))
            async for event in EventSource(response).aiter_sse()
        ]
    assert events[-1] == ("done", {"ok": True, "answer": events[-1][1]["answer"]})
    ranking = [(chunk["chunkId"], chunk["score"]) for chunk in events[0][1]["chunks"]]
    cited = [data["chunkId"] for name, data in events if name == "citation"]
    return ranking, json.dumps([events[-1][1]["answer"], cited])


Put = Callable[[httpx.AsyncClient, str, dict[str, Any]], Any]


async def _differences(
    clients: dict[str, httpx.AsyncClient], brain: str, put: Put, bodies: Iterable[dict[str, Any]]
) -> list[str]:
    """What is not the same on all; the daemons are asked side by side."""
    differences = []
    for body in bodies:
        answers = await asyncio.gather(*(put(http, brain, body) for http in clients.values()))
        first = answers[0]
        for sdk, answer in zip(clients, answers, strict=True):
            same = [c for c, _ in answer[0]] == [c for c, _ in first[0]] and all(
                abs(a - b) <= SCORE_TOLERANCE
                for (_, a), (_, b) in zip(answer[0], first[0], strict=True)
            )
            if not same or answer[1] != first[1]:
                differences.append(f"{sdk} differs on {body}: {answer} and not {first}")
    return differences


_ALPHABETS = (
    "abcdefghijklmnopqrstuvwxyz",
    "äöüßéèçñåøæœİıŞşĞğ",
    "αβγδεζηθικλμνξοπρσςτυφχψωΣΟΔ",
    "абвгдежзийклмнопрстуфхцчшщъыьэюя",
    "東京大学日本語研究所会社員電車",
    "ひらがなカタカナー",
    "한국어서울대학교사람",
    "हिन्दीभारतकखगघ",
    "ไทยกขคงจฉ",
    "ابتثجحخدذرز",
    "עבריתאבגד",
    "ＡＢＣａｂｃ１２３ﬁﬂ²³½",
    "0123456789\u0660\u0661\u0662\u0663",
    "e\u0301o\u0308n\u0303A\u030a",
)
_BETWEEN = (" ", " ", " ", " ", ", ", ". ", "\n", " - ", "_", "'", " 😀 ", "\u00a0", "\t", "! ")


def _vocabulary(rng: random.Random, size: int) -> list[str]:
    return ["".join(rng.choices(rng.choice(_ALPHABETS), k=rng.randint(1, 9))) for _ in range(size)]


def _text(rng: random.Random, words: Sequence[str], weights: Sequence[float], length: int) -> str:
    chosen = rng.choices(words, cum_weights=weights, k=length)
    return "".join(word + rng.choice(_BETWEEN) for word in chosen)


def _random_corpus(
    rng: random.Random, documents: int, queries: int
) -> tuple[list[Document], list[str]]:
    """Documents and queries over one vocabulary in many scripts, common words more common."""
    words = _vocabulary(rng, 2_000)
    weights = []
    total = 0.0
    for rank in range(1, len(words) + 1):
        total += 1 / rank
        weights.append(total)
    made: list[Document] = []
    for number in range(documents):
        # A few are long enough to be cut into chunks, a few are empty or repeat another.
        length = 40_000 if number % 1_000 == 7 else rng.randint(0, 80)
        text = _text(rng, words, weights, length)
        if number % 97 == 3:
            text = made[-1].content.decode()
        folder = rng.choice(("raw", "memory/global", "ß", "\U0001f600", "\ufb01"))
        made.append(Document(f"{folder}/{number}.md", text.encode(), "text/markdown"))
    return made, [
        _text(rng, words, weights, rng.randint(1, 12)).strip() or "x" for _ in range(queries)
    ]


@pytest.mark.exhaustive
async def test_random_documents_in_mixed_scripts_rank_alike(cache: Path, tmp_path: Path) -> None:
    del cache
    documents, queries = _random_corpus(random.Random(20261121), 1_000, 80)
    async with _daemons(runnable(), tmp_path) as clients:
        await asyncio.gather(*(_fill(http, "random", documents) for http in clients.values()))
        counts = [(await http.get("/v1/brains/random")).json() for http in clients.values()]
        assert all(c["documents"] == 1_000 and c["chunks"] > 1_000 for c in counts), counts
        assert len({c["chunks"] for c in counts}) == 1
        bodies = (
            {"query": query, "topK": 1 + number % 50, "mode": mode}
            for number, query in enumerate(queries)
            for mode in _MODES
        )
        assert await _differences(clients, "random", _search, bodies) == []
        tuned = (
            {
                "query": query,
                "mode": "hybrid",
                "filters": {"pathPrefix": "raw/"},
                "tuning": {"fusion": "rrf", "poolFloor": 7} if n % 2 else {"alpha": 0.3},
            }
            for n, query in enumerate(queries[:40])
        )
        assert await _differences(clients, "random", _search, tuned) == []
        distances = (
            {"query": query, "mode": mode, "topK": 50, "tuning": {"kernel": "inverse-l2"}}
            for query in queries[:40]
            for mode in ("semantic", "hybrid")
        )
        assert await _differences(clients, "random", _search, distances) == []


@pytest.mark.parametrize("name", ["smoke", pytest.param("lme", marks=pytest.mark.exhaustive)])
async def test_the_shipped_datasets_are_ranked_and_answered_alike(
    name: str, cache: Path, tmp_path: Path
) -> None:
    del cache
    dataset = open_dataset(name)
    corpus = corpus_of(dataset)
    source = CorpusFolder(corpus) if corpus else ReferenceAnswers(dataset)
    documents = list(source.documents())
    questions = list(select(dataset, Selection()))
    async with _daemons(runnable(), tmp_path) as clients:
        await asyncio.gather(*(_fill(http, name, documents) for http in clients.values()))
        for mode in _MODES:
            searches = ({"query": q.question, "topK": 5, "mode": mode} for q in questions)
            assert await _differences(clients, name, _search, searches) == []
            for reader in ("basic", "augmented"):
                asked = (
                    {
                        "question": q.question,
                        "mode": mode,
                        "readerMode": reader,
                        "questionDate": q.question_date,
                    }
                    for q in questions
                )
                assert await _differences(clients, name, _ask, asked) == []


async def test_reports_a_daemon_that_ranks_differently(cache: Path, tmp_path: Path) -> None:
    del cache
    front = b"---\ntitle: lamp\n---\n"
    documents = [Document(f"{n}.md", front * n + b"the lamp", "text/plain") for n in (0, 1)]
    minimal = "sdks/examples/minimal"
    async with _daemons(["py", minimal], tmp_path) as clients:
        for http in clients.values():
            await _fill(http, "b", documents, batch=False)
        [difference] = await _differences(
            clients, "b", _search, [{"query": "lamp", "mode": "bm25"}]
        )
    assert difference.startswith(f"{minimal} differs")


@pytest.mark.capability("run")
def test_a_run_of_all_sdks_ends_in_one_matrix(
    installed: Callable[..., Ended], environment: dict[str, str]
) -> None:
    environment["PYTHONIOENCODING"] = "utf-8"
    ended = installed(
        "run", "--sdk", "all", "--dataset", "smoke", "--scorer", "exact",
        "--seed-reference-brain", "--upstream", "scripted", "--json", "report.json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    report = RunReport.model_validate_json((ended.folder / "report.json").read_text())
    assert [run.sdk for run in report.runs] == sorted(runnable())
    assert report.agreement is not None
    assert report.agreement.complete, report.agreement
    equal = f"{', '.join(sorted(runnable()))}: rankings equal 20/20, answers equal 20/20"
    identical = f"{', '.join(sorted(runnable()))}: identical on 20 questions of smoke"
    assert ended.out.splitlines()[-2:] == [equal, identical]
    assert report.parity is not None
    assert report.parity.verdict == "identical"
    for column in ("pass rate (95 %)", "p50 ms", "TTFT ms", "MiB"):
        assert column in ended.err


def test_an_sdk_that_cannot_run_here_is_skipped_with_a_notice(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    _known(
        workspace,
        absent='requires = ["no-such-tool"]',
        homeless='[build]\ncommand = ["sh", "-c", "exit 69"]\ninputs = ["sdk.toml"]',
    )
    ended = memconform(
        "run", "--sdk", "all", "--dataset", "smoke", "--scorer", "exact", "--mode", "bm25",
        "--seed-reference-brain", "--scenario", "search-retrieve-only", "--json", "report.json",
    )  # fmt: skip
    assert ended.code == 0, ended.err
    assert "absent skipped: toolchain_missing: absent needs 'no-such-tool'" in ended.err
    assert "homeless skipped: build_unavailable" in ended.err
    report = json.loads((workspace / "report.json").read_text())
    assert [skipped["sdk"] for skipped in report["skipped"]] == ["absent", "homeless"]
    assert len(report["runs"]) == len(runnable())


def test_an_sdk_that_does_not_build_fails_and_is_not_skipped(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    _known(workspace, broken='[build]\ncommand = ["false"]\ninputs = ["sdk.toml"]')
    ended = memconform(
        *("run", "--sdk", "all", "--dataset", "smoke", "--scorer", "exact", "--limit", "3"),
        *("--mode", "bm25", "--seed-reference-brain", "--scenario", "search-retrieve-only"),
        "--quiet",
    )
    assert ended.code == 3
    assert "broken skipped: build_failed" in ended.err
    assert "p50 ms" not in ended.err
    assert len(ended.out.splitlines()) == len(runnable()) + 2 * (len(runnable()) > 1)


def test_agreement_can_be_required(memconform: Callable[..., Ended], workspace: Path) -> None:
    flags = (
        *("run", "--dataset", "smoke", "--scorer", "exact", "--mode", "bm25", "--limit", "5"),
        *("--seed-reference-brain", "--scenario", "search-retrieve-only", "--require-agreement"),
    )
    py, minimal = CHECKOUT / "sdks" / "py", CHECKOUT / "sdks" / "examples" / "minimal"
    assert memconform(*flags, "--sdk", py, "--sdk", minimal).code == 0
    assert memconform(*flags, "--sdk", py).code == 5
    backwards = workspace / "backwards"
    backwards.mkdir()
    source = (minimal / "memory.py").read_text()
    (backwards / "memory.py").write_text(source.replace("SELECT -bm25", "SELECT -2 * bm25"))
    manifest = (minimal / "sdk.toml").read_text().replace("minimal", "backwards")
    (backwards / "sdk.toml").write_text(manifest)
    ended = memconform(*flags, "--sdk", py, "--sdk", backwards)
    assert (ended.code, "backwards: score" in ended.err) == (1, True), ended.err
    assert memconform(*(f for f in flags if f != "--require-agreement"), "--sdk", py).code == 0


def test_rejects_an_sdk_that_is_given_twice(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    py = str(CHECKOUT / "sdks" / "py")
    flags = ("--dataset", "smoke", "--scorer", "exact", "--seed-reference-brain")
    ended = memconform("run", "--sdk", "py", "--sdk", py, *flags)
    assert (ended.code, "one_name_twice" in ended.err) == (2, True)
    (workspace / "memconform.toml").write_text(f'[sdks]\nmine = "{py}/sdk.toml"\n')
    assert memconform("run", "--sdk", "all", *flags).code == 2


def test_no_skip_makes_a_missing_sdk_a_failure(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    _known(workspace, absent='requires = ["no-such-tool"]')
    ended = memconform(
        "run", "--sdk", "all", "--no-skip", "--dataset", "smoke", "--scorer", "exact",
        "--seed-reference-brain",
    )  # fmt: skip
    assert (ended.code, ended.out) == (3, "")
    assert "absent needs 'no-such-tool'" in ended.err


def test_an_sdk_that_does_not_claim_the_mode_is_skipped_with_a_notice(
    memconform: Callable[..., Ended], workspace: Path
) -> None:
    _known(workspace, modest="")
    ended = memconform(
        *("run", "--sdk", "all", "--dataset", "smoke", "--scorer", "exact", "--limit", "3"),
        "--seed-reference-brain",
    )
    assert ended.code == 0, ended.err
    assert "modest skipped: profile_not_claimed" in ended.err
    assert len(ended.out.splitlines()) == len(runnable()) + 2


def _known(workspace: Path, **manifests: str) -> None:
    """SDKs of the user's own, each with a line that keeps it from running."""
    lines = ["[sdks]"]
    for name, line in manifests.items():
        (workspace / name).mkdir()
        (workspace / name / "sdk.toml").write_text(
            f'name = "{name}"\nlanguage = "none"\n'
            + (f"{line}\n" if line.startswith("requires") else "")
            + '[serve]\nargv = ["true"]\n[capabilities]\nprofiles = ["core"]\nmodes = ["bm25"]\n'
            + (f"{line}\n" if line.startswith("[") else "")
        )
        lines.append(f'{name} = "{name}/sdk.toml"')
    (workspace / "memconform.toml").write_text("\n".join(lines) + "\n")
