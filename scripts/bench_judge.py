"""What judging adds to a service's own latency and to its client's own work, and stored answers.

    python scripts/bench_judge.py [--answers N]

The service is the scripted upstream, in a process of its own; both sides of each ratio are
measured in this run, in turns, and the least of three rounds counts.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from openai import AsyncOpenAI

from memconform.bench.qa.plan import AnswerSelection, QaPlan, RubricRun
from memconform.bench.qa.report_builder import QaFinished
from memconform.bench.qa.schedule import score_answers
from memconform.daemons.upstream import scripted_upstream
from memconform.datasets.answer_keys import AnswerKey
from memconform.datasets.hypotheses import Hypotheses
from memconform.datasets.question import Question
from memconform.llm.budget import Ledger
from memconform.llm.cache import CachedReply, ReplyCache
from memconform.llm.names import ModelName
from memconform.llm.session import CacheUse, CallPolicy, LlmSession
from memconform.scoring.judge.longmemeval import LongMemEvalRubric
from memconform.scoring.judge.prompt import SCHEMA, judge_request
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.scorer import DaemonResponse
from memconform.storage.folders import RunFolder
from reporting import missed, report

_CONCURRENCY = 16
_LATENCY_S = 0.3
_ROUNDS = 3
_STORED = 2_708
"""Questions of WMB-100K."""
_MODEL = ModelName("openai", "gpt-4o-2024-08-06")
_REPLY = '{"reason": "The candidate names the harbour.", "verdict": "correct", "score": 1}'


def _question(number: int) -> Question:
    return Question(
        id=f"q{number}",
        question=f"Where is boat {number}?",
        answers=(f"Boat {number} lies in the harbour of Brel.",),
    )


def _answer(number: int) -> DaemonResponse:
    return DaemonResponse(text=f"Boat {number} is in the harbour of Brel [1].", kind="answer")


async def _judge(url: str, answers: int, folder: Path, cache: CacheUse) -> None:
    env = {"OPENAI_API_KEY": "bench", "OPENAI_BASE_URL": f"{url}/v1"}
    session = LlmSession(
        Ledger(100.0),
        policy=CallPolicy(concurrency=_CONCURRENCY, cache=cache),
        cache=ReplyCache(folder),
        env=env,
    )
    scorer = JudgeScorer([session.model(_MODEL)])
    scores = await asyncio.gather(
        *(scorer.score(_question(number), _answer(number)) for number in range(answers))
    )
    await session.aclose()
    if any(score.value != 1.0 for score in scores):
        raise SystemExit("an answer was not judged")


async def _bare(url: str, answers: int) -> None:
    """The vendor's client alone, with the same requests."""
    slots = asyncio.Semaphore(_CONCURRENCY)
    output = {"name": "reply", "schema": SCHEMA, "strict": True}
    async with AsyncOpenAI(api_key="bench", base_url=f"{url}/v1", max_retries=0) as client:

        async def call(number: int) -> None:
            request = judge_request(_question(number), _answer(number).text)
            async with slots:
                body: dict[str, Any] = {
                    "messages": [asdict(message) for message in request.messages],
                    "max_completion_tokens": request.max_output_tokens,
                    "temperature": 0,
                    "response_format": {"type": "json_schema", "json_schema": output},
                }
                await client.chat.completions.create(model=_MODEL.model, **body)

        await asyncio.gather(*map(call, range(answers)))


async def _cost(work: Callable[[], Awaitable[None]]) -> tuple[float, float]:
    """Seconds of wall clock, and of this process's CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    await work()
    return time.perf_counter() - wall, time.process_time() - cpu


async def _score_stored(folder: Path, cache: ReplyCache, run: str) -> None:
    """Score as many stored answers as WMB-100K has questions, with the journal and the report."""
    questions = {f"q{number}": _question(number) for number in range(_STORED)}
    answers = {name: _answer(number).text for number, name in enumerate(questions)}
    selection = AnswerSelection(
        AnswerKey("longmemeval", folder / "oracle.json", "", questions, {}),
        Hypotheses(folder / "hypotheses.jsonl", answers),
        partial=False,
        disputed=None,
    )
    session = LlmSession(
        Ledger(0.0),
        policy=CallPolicy(cache="only"),
        cache=cache,
        env={"OPENAI_API_KEY": "bench"},
    )
    model, rubric = session.model(_MODEL), LongMemEvalRubric()
    if run == "fill":
        for name, question in questions.items():
            key = model.key(rubric.request(question, answers[name]))
            cache.write(key, CachedReply("yes", _MODEL.model))
    else:
        runs = {"longmemeval": RubricRun(JudgeScorer([model], rubric=rubric), "own", None)}
        plan = QaPlan(selection=selection, rubrics=runs)
        events = [event async for event in score_answers(plan, RunFolder(folder, run))]
        if not isinstance(events[-1], QaFinished) or events[-1].report.exit_code:
            raise SystemExit("a stored answer was not judged")
    await session.aclose()


async def _measure_stored() -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = ReplyCache(Path(folder) / "cache")
        await _score_stored(Path(folder), cache, "fill")
        took = min(
            [
                (await _cost(partial(_score_stored, Path(folder), cache, run)))[0]
                for run in ("first", "second", "third")
            ]
        )
        report(f"scoring {_STORED:,} stored answers from the cache", took, "s", limit=3.0)


async def _measure(answers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        async with scripted_upstream(Path(folder) / "upstream", f"bench-{os.getpid()}") as upstream:
            url = upstream.base_url

            async def script(delay_ms: float) -> None:
                reply = {"text": _REPLY, "delay_ms": delay_ms}
                async with httpx.AsyncClient() as http:
                    answer = await http.put(
                        f"{url}/_control/script", json={"rules": [{"reply": reply}]}
                    )
                    answer.raise_for_status()

            await script(0)
            await _bare(url, 32)
            cpu = {"judged": float("inf"), "bare": float("inf")}
            for _ in range(_ROUNDS):
                _, bare = await _cost(lambda: _bare(url, answers))
                _, judged = await _cost(lambda: _judge(url, answers, cache, "off"))
                cpu = {
                    "judged": min(cpu["judged"], judged),
                    "bare": min(cpu["bare"], bare),
                }
            added = 1e3 * (cpu["judged"] - cpu["bare"]) / answers
            report("judging: CPU an answer over the vendor's client", added, "ms", limit=3.0)
            await script(1e3 * _LATENCY_S)
            took, _ = await _cost(lambda: _judge(url, answers, cache, "use"))
            ideal = answers * _LATENCY_S / _CONCURRENCY
            report(
                f"judging {answers} answers of {_LATENCY_S:g} s, to the ideal",
                took / ideal,
                "x",
                limit=1.25,
            )
            again = min(
                [(await _cost(lambda: _judge(url, answers, cache, "only")))[0] for _ in range(3)]
            )
            report(f"judging {answers} answers from the cache", again, "s", limit=1.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=int, default=500)
    os.environ.pop("MEMCONFORM_LEDGER", None)
    answers = parser.parse_args().answers
    asyncio.run(_measure_stored())
    asyncio.run(_measure(answers))
    return missed()


if __name__ == "__main__":
    sys.exit(main())
