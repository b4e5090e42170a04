"""Scores held to the authors' own code, on the public files.

LONGMEMEVAL and LOCOMO name checkouts of the two public repositories (of LoCoMo its branch `code`).
Their code is read from there, and is in no part of this project.
"""

import ast
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memconform.bench.qa.authors_log import official_figures, official_lines
from memconform.datasets.answer_keys import AnswerKey, read_answer_key
from memconform.datasets.conversation_store import ConversationStore
from memconform.datasets.locomo import CATEGORIES
from memconform.scoring.answer_text import locomo_f1
from memconform.scoring.judge.longmemeval import LongMemEvalRubric
from memconform.scoring.judge.official_prompts import read_official_prompts
from memconform.scoring.reader.names import Method
from memconform.scoring.reader.official_prompts import OfficialWording, read_script_texts
from memconform.scoring.reader.passages import retrieved_passages
from tests.conftest import CHECKOUT

DATA = Path(os.environ.get("MEMCONFORM_DATA", CHECKOUT.parent / "shared" / "data"))
ORACLE = DATA / "longmemeval" / "longmemeval_oracle.json"
LOCOMO_DATA = DATA / "locomo" / "locomo10.json"

METHODS: tuple[Method, ...] = ("direct", "con", "con-separate")

real = pytest.mark.skipif(not DATA.is_dir(), reason="the public files are not in $MEMCONFORM_DATA")


def _checkout(variable: str) -> Path:
    path = os.environ.get(variable)
    if not path:
        pytest.skip(f"${variable} names no checkout of the authors' repository")
    return Path(path)


@pytest.fixture(scope="module")
def oracle() -> AnswerKey:
    return read_answer_key(ORACLE, "longmemeval")


@pytest.fixture(scope="module")
def locomo() -> AnswerKey:
    return read_answer_key(LOCOMO_DATA, "locomo")


class _Model:
    """Stands for the service: notes are the number of characters that were asked about."""

    def complete(self, _client: object, **call: Any) -> object:
        message = SimpleNamespace(content=f" {len(call['messages'][0]['content'])} ")
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])


def _prepare_prompt(script: Path) -> Callable[..., str]:
    """The function of the released script alone: its imports need torch."""
    tree = ast.parse(script.read_text())
    body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "prepare_prompt"]
    names: dict[str, Any] = {"json": json, "chat_completions_with_backoff": _Model().complete}
    exec(compile(ast.Module(list(body), []), str(script), "exec"), names)  # noqa: S102 - a checkout
    prepare: Callable[..., str] = names["prepare_prompt"]
    return prepare


@real
@pytest.mark.slow
def test_official_reader_prompts_are_those_of_the_released_script() -> None:
    script = _checkout("LONGMEMEVAL") / "src" / "generation" / "run_generation.py"
    prepare, texts = _prepare_prompt(script), read_script_texts(script)
    tokenizer = SimpleNamespace(encode=lambda _text, **_: [])
    rows = json.loads(ORACLE.read_bytes())[::5]
    draw = random.Random(1)
    compared = 0
    with ConversationStore() as conversations:
        conversations.load(ORACLE, "longmemeval", {row["question_id"] for row in rows})
        for row, (retriever, kind), user_only, history, method in product(
            rows,
            (("flat-session", "session"), ("flat-turn", "turn")),
            (False, True),
            ("json", "nl"),
            METHODS,
        ):
            # The script itself fails on these: a list has no role, notes none either.
            if (kind == "turn" and user_only) or (history == "nl" and method == "con-separate"):
                continue
            talk = conversations[row["question_id"]]
            ids = [s.id for s in talk.sessions]
            if kind == "turn":
                ids = [t.id for s in talk.sessions for t in s.turns if t.by_user]
            draw.shuffle(ids)
            entry = json.loads(json.dumps(row))
            entry["retrieval_results"] = {
                "ranked_items": [{"corpus_id": item, "text": ""} for item in ids]
            }
            theirs = prepare(
                *(entry, retriever, 50, user_only, history, method != "direct", tokenizer),
                *("openai", 10**9, "none"),
                con=method == "con-separate",
            )
            wording = OfficialWording(texts, method, "json" if history == "json" else "text")
            passages = retrieved_passages(talk, ids, "round")
            if user_only:
                passages = [
                    replace(each, turns=tuple(t for t in each.turns if t.by_user))
                    for each in passages
                ]
            asked = (row["question"], row["question_date"])
            if method == "con-separate":
                passages = [
                    wording.apply_note(
                        each, str(len(wording.note_request(*asked, each).messages[0].content))
                    )
                    for each in passages
                ]
            [message] = wording.answer_request(*asked, passages).messages
            assert message.content == theirs, (row["question_id"], retriever, history, method)
            compared += 1
    assert compared == 1_500
    for method in METHODS[:2]:
        theirs = prepare(
            *(rows[0], "no-retrieval", 5, False, "json", method != "direct", tokenizer),
            *("openai", 10**9, "none"),
        )
        wording = OfficialWording(texts, method, "json")
        [message] = wording.answer_request(rows[0]["question"], "day", None).messages
        assert message.content == theirs


@real
def test_the_public_files_have_every_question_and_integer_answers(
    oracle: AnswerKey, locomo: AnswerKey
) -> None:
    assert len(oracle.questions) == 500
    assert sum(question.abstain for question in oracle.questions.values()) == 30
    rows = json.loads(ORACLE.read_bytes())
    numbers = [row for row in rows if not isinstance(row["answer"], str)]
    assert len(numbers) == 32
    rubric = LongMemEvalRubric()
    for row in numbers:
        prompt = rubric.request(oracle.questions[row["question_id"]], "x").messages[-1].content
        assert f"Reference answer: {row['answer']}\n" in prompt
    # Four of them have no evidence that resolves, which counts for retrieval only.
    assert len(locomo.questions) == 1_986
    assert sum(question.abstain for question in locomo.questions.values()) == 446


def _function(script: Path, name: str) -> Callable[..., str]:
    """One function of a script, without the rest of it."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    [node] = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    scope: dict[str, Any] = {}
    exec(compile(ast.Module([node], []), str(script), "exec"), scope)  # noqa: S102 - the user's copy
    function: Callable[..., str] = scope[name]
    return function


@real
@pytest.mark.slow
def test_official_prompts_are_those_that_the_released_script_sends(oracle: AnswerKey) -> None:
    script = _checkout("LONGMEMEVAL") / "src" / "evaluation" / "evaluate_qa.py"
    rubric, theirs = read_official_prompts(script), _function(script, "get_anscheck_prompt")
    for row in json.loads(ORACLE.read_bytes()):
        name, question = row["question_id"], oracle.questions[row["question_id"]]
        [message] = rubric.request(question, "In {braces}: 5").messages
        abstention = "_abs" in name
        assert message.content == theirs(
            row["question_type"], row["question"], row["answer"], "In {braces}: 5", abstention
        )


@real
@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.6, 0.02])
def test_official_figures_are_those_that_the_released_script_prints(
    oracle: AnswerKey, tmp_path: Path, share: float
) -> None:
    script = _checkout("LONGMEMEVAL") / "src" / "evaluation" / "print_qa_metrics.py"
    generator = random.Random(7)
    model = "gpt-4o-2024-08-06"
    labels = {
        name: generator.random() < 0.37 for name in oracle.questions if generator.random() <= share
    }
    log = tmp_path / "log.jsonl"
    rows = (
        {"question_id": name, "hypothesis": "x", "autoeval_label": {"model": model, "label": label}}
        for name, label in labels.items()
    )
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    printed = subprocess.run(
        [sys.executable, "-W", "ignore", script, log, ORACLE],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    figures = official_figures(labels, oracle.questions, [model])
    assert [line for line in printed.splitlines() if line] == official_lines(figures)


_THEIRS = """
import json, sys, types
# Imported at the top of the script, for a metric that it does not use here.
sys.modules["bert_score"] = types.SimpleNamespace(score=None)
sys.path.insert(0, sys.argv[1])
from task_eval.evaluation import eval_question_answering
scores, _, _ = eval_question_answering(sys.argv[2])
json.dump([float(score) for score in scores], open(sys.argv[3], "w"))
"""


@real
@pytest.mark.slow
def test_f1_is_that_of_the_released_code_on_every_question(
    locomo: AnswerKey, tmp_path: Path
) -> None:
    checkout = _checkout("LOCOMO")
    numbers = {name: number for number, name in CATEGORIES.items()}
    generator = random.Random(1)
    references = [question.reference_answer or "" for question in locomo.questions.values()]
    words = [word for reference in references for word in reference.split()]
    words += ["the", "and", "An", ",", "dying", "e\u0301the", "U.S.", "not mentioned", "don't"]
    rows, ours = [], []
    for question in locomo.questions.values():
        for _ in range(3):
            own = (question.reference_answer or "").split()
            some = generator.sample(own, generator.randint(0, len(own)))
            text = " ".join(some + generator.choices(words, k=generator.randint(0, 6)))
            if generator.random() < 0.3:
                text = text.replace(" ", ", ", 2)
            # Their function reads an answer of adversarial questions too, and does not use it.
            row = {"answer": question.reference_answer or "", "prediction": text, "evidence": []}
            rows.append(row | {"category": numbers[question.category]})
            ours.append(locomo_f1(question, text))
    (tmp_path / "rows.json").write_text(json.dumps({"qa": rows}))
    subprocess.run(
        [sys.executable, "-c", _THEIRS, checkout, tmp_path / "rows.json", tmp_path / "scores.json"],
        check=True,
        capture_output=True,
    )
    assert ours == json.loads((tmp_path / "scores.json").read_text())
