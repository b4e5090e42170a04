"""Results of `answer`, `judge` and `wmb score`, made of statuses by the builders of these verbs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from memconform.bench.answering.arms import CONTROLS, Control
from memconform.bench.answering.plan import AnswerPlan, AnswerTask, Arm
from memconform.bench.answering.records import AnswerSettings, ArmAnswer, ReaderSettings
from memconform.bench.answering.report_builder import AnswerReportBuilder
from memconform.bench.qa.plan import AnswerSelection, QaPlan, RubricRun
from memconform.bench.qa.records import Judgement
from memconform.bench.qa.report_builder import QaReportBuilder
from memconform.bench.wmb.plan import WmbPlan
from memconform.bench.wmb.records import WmbVerdict
from memconform.bench.wmb.report_builder import WmbReportBuilder
from memconform.bench.wmb.stored_answers import memories_digest, read_stored_answers
from memconform.datasets.answer_keys import AnswerKey, Suite
from memconform.datasets.hypotheses import read_hypotheses
from memconform.datasets.locomo import conversation_of
from memconform.datasets.question import Question
from memconform.datasets.wmb import read_wmb_key
from memconform.errors import DaemonError
from memconform.llm.records import ModelSettings
from memconform.scoring.judge.records import JudgeSettings
from memconform.scoring.judge.scorer import JudgeScorer
from memconform.scoring.judge.wmb import WmbRubric
from memconform.scoring.statuses import QuestionStatus
from memconform.scoring.wmb import PROFILES
from memconform.storage.folders import RunFolder
from tests.unit.wmb_files import RIGHT, questions, write_answers, write_benchmark

Statuses = Mapping[str, QuestionStatus]
"""How questions ended, by their ids."""

SHA = "d" * 64
READER = ModelSettings(model="openai:reader", sampling={})
JUDGE = JudgeSettings(models=[ModelSettings(model="openai:judge", sampling={})], prompt="rubric")
_READER = ReaderSettings(
    model=READER, prompts="own", prompt="p", method="direct", history="text", speakers="all",
    unit="session", top_k=10, context_tokens=9_000, budget_tokens=5_000, seed=0,
)  # fmt: skip


class _Scorer(JudgeScorer):
    """A scorer with the settings of judges that nobody asks."""

    @property
    def settings(self) -> JudgeSettings:
        return JUDGE


def question(name: str) -> Question:
    """A question of a benchmark, with the text that those of the replay have."""
    return Question(id=name, question=f"What of {name}?", category="one", answers=(f"the {name}",))


def _key(suite: Suite, names: Iterable[str]) -> AnswerKey:
    known = {name: question(name) for name in names}
    clusters = {name: conversation_of(name) for name in known} if suite == "locomo" else {}
    return AnswerKey(suite, Path("/data.json"), SHA, known, clusters)


def write_answer(
    output: Path,
    run_id: str,
    arms: Mapping[str, Statuses],
    *,
    suite: Suite = "longmemeval",
    ended: str = "",
    **settings: Any,
) -> Path:
    """The result of `answer`; `ended` is the arm that an error ended."""
    names = list(next(iter(arms.values())))
    key = _key(suite, names)
    values: dict[str, Any] = {
        "suite": suite, "data_sha256": SHA, "asked_sha256": "a", "disputed_sha256": None,
        "level": "session", "reader": _READER, "rubric": "longmemeval", "judge": JUDGE,
    }  # fmt: skip
    plan = AnswerPlan(
        tasks=[AnswerTask(key.questions[name], "h", ()) for name in names],
        arms=[
            Arm(name, control=cast("Control", name) if name in CONTROLS else None) for name in arms
        ],
        key=key,
        conversations=cast("Any", None),
        reader=cast("Any", None),
        judge=cast("Any", None),
        settings=AnswerSettings(**(values | settings)),
        disputed=None,
        benches=("bench-run",),
        command=("memconform", "answer"),
    )
    builder = AnswerReportBuilder(plan, run_id)
    for arm, statuses in arms.items():
        for name, status in statuses.items():
            builder.add(
                ArmAnswer(
                    arm=arm, question=name, text=key.questions[name].question, category="one",
                    status=status, code="" if status.measured else "llm_failed", reason="so",
                    answer=f"It is {name}, {status.value}.", served_model="", shown=["s1"],
                    left_out=0, gold_shown=None,
                )
            )  # fmt: skip
    if ended:
        error = DaemonError("no money", code="budget_spent", hint="raise it")
        builder.errors[ended] = error
    return builder.write(RunFolder(output, run_id)).result


def write_judged(
    output: Path,
    run_id: str,
    rubrics: Mapping[str, Statuses],
    *,
    suite: Suite = "longmemeval",
    missing: tuple[str, ...] = (),
) -> Path:
    """The result of `judge longmemeval` or `judge locomo`; `missing` have no answer."""
    names = list(next(iter(rubrics.values())))
    output.mkdir(parents=True, exist_ok=True)
    file = output / f"{run_id}.jsonl"
    rows = [{"question_id": name, "hypothesis": f"It is {name}."} for name in names]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    key = _key(suite, (*names, *missing))
    selection = AnswerSelection(
        key,
        read_hypotheses(file),
        partial=False,
        disputed=None,
    )
    runs = {name: RubricRun(_Scorer([]), "own", None) for name in rubrics}
    builder = QaReportBuilder(QaPlan(selection=selection, rubrics=runs), run_id)
    for rubric, statuses in rubrics.items():
        for name, status in statuses.items():
            builder.add(
                Judgement(
                    rubric=rubric, question=name, text=key.questions[name].question, category="one",
                    answer=f"It is {name}.", status=status, reason="so", votes=[],
                    score=float(status is QuestionStatus.CORRECT) if status.measured else None,
                )
            )  # fmt: skip
    return builder.write(RunFolder(output, run_id)).result


def write_wmb_score(output: Path, run_id: str, *, lost: int = 0, not_asked: int = 0) -> Path:
    """The result of `wmb score`; its judge fails on the first `lost` answers, and its run did not
    ask the last questions."""
    asked = questions(scored=4, probes=4, analysed=1)
    key = read_wmb_key(write_benchmark(output / f"{run_id}-data", asked))
    rows = [
        {
            "question_id": row["id"],
            "memories_returned": [] if row["qtype"] == "FalseMemory" else [RIGHT],
            "latency_ms": 10,
        }
        for row in asked[: len(asked) - not_asked]
    ]
    stored = read_stored_answers(write_answers(output / f"{run_id}.json", rows), key.questions)
    plan = WmbPlan(
        key=key,
        answers=replace(
            stored, not_asked=tuple(row["id"] for row in asked[len(asked) - not_asked :])
        ),
        scorer=_Scorer([], rubric=WmbRubric()),
        prompts="own",
        label="quick",
        profiles=PROFILES,
    )
    builder = WmbReportBuilder(plan, run_id)
    for number, (each, text) in enumerate(plan.texts(set())):
        status = QuestionStatus.JUDGE_ERROR if number < lost else QuestionStatus.CORRECT
        digest = memories_digest(text)
        builder.add(
            WmbVerdict(
                question=each.id, memories=digest, status=status, reason="as it is", votes=[]
            )
        )
    return builder.write(RunFolder(output, run_id)).result
