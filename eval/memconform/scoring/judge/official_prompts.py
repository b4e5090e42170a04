"""LongMemEval's own prompts, read from a copy of its released script, which is never executed."""

import ast
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memconform.datasets.question import Question
from memconform.datasets.released_script import ReleasedScript, template_fields
from memconform.errors import UsageError
from memconform.llm.chat import ChatRequest, Message
from memconform.scoring.judge.longmemeval import MAX_OUTPUT, parse_yes_no
from memconform.scoring.judge.prompt import JudgeReply
from memconform.scoring.scorer import Score

FUNCTION: Final = "get_anscheck_prompt"
ABSTENTION: Final = ""
"""The key of the prompt for questions that cannot be answered."""

_HINT: Final = "give LongMemEval's src/evaluation/evaluate_qa.py, or use --prompts own"
_FIELDS: Final = 3
"""Question, reference answer, response: the fields of a template, all of them `{}`."""


@dataclass(frozen=True, slots=True)
class OfficialRubric:
    """The released prompts, one user message each, as the released script sends them."""

    templates: dict[str, str]
    """By question type; `ABSTENTION` for questions that cannot be answered."""
    name: str = "longmemeval"

    def require_scorable(self, question: Question) -> None:
        """Raise UsageError (`prompt_missing`) for a type that the script has no prompt for."""
        if self._type(question) not in self.templates:
            raise UsageError(
                f"question {question.id!r} has type {question.category!r}, for which the script has"
                " no prompt",
                code="prompt_missing",
                hint="use --prompts own",
            )

    def shown(self, candidate: str) -> str:
        """All of it: the released script cuts nothing off."""
        return candidate

    def request(self, question: Question, candidate: str) -> ChatRequest:
        """The call that judges one answer; `candidate` is neither cut nor fenced."""
        text = self.templates[self._type(question)].format(
            question.question, question.reference_answer or "", candidate
        )
        return ChatRequest(
            messages=(Message("user", text),),
            prompt_version=f"official-{self.digest()}",
            max_output_tokens=MAX_OUTPUT,
            reply_form="the single word yes or no",
        )

    @staticmethod
    def _type(question: Question) -> str:
        return ABSTENTION if question.abstain else question.category

    def parse(self, text: str) -> JudgeReply:
        """The verdict of a reply; raises ValueError as `parse_yes_no`."""
        return parse_yes_no(text)

    def settle(self, question: Question, candidate: str) -> Score | None:
        """None: the released script asks about every answer."""
        del question, candidate
        return None

    def digest(self) -> str:
        """The digest of the templates."""
        return hashlib.sha256(repr(sorted(self.templates.items())).encode()).hexdigest()[:12]


def read_official_prompts(script: Path) -> OfficialRubric:
    """The prompts in `get_anscheck_prompt` of a copy of evaluate_qa.py.

    Only its syntax tree is read. A prompt is what a branch assigns to `template`; its question
    types are the texts that the branch's condition compares with.

    Raises:
        UsageError: `bad_prompt_script`, naming the line; `dataset_unreadable`.
    """
    released = ReleasedScript(script, _HINT)
    templates: dict[str, str] = {}
    for statement in released.function(FUNCTION).body:
        # Its outermost condition is `not abstention`.
        if isinstance(statement, ast.If):
            _add(released, statement.body, templates)
            _add_template(released, statement.orelse, (ABSTENTION,), templates)
    if ABSTENTION not in templates or len(templates) == 1:
        raise released.unfit(f"{FUNCTION} has no prompts by question type, or none for abstention")
    return OfficialRubric(templates)


def _add(script: ReleasedScript, body: list[ast.stmt], templates: dict[str, str]) -> None:
    """Add the prompts of an if/elif chain."""
    for statement in body:
        if isinstance(statement, ast.If):
            _add_template(script, statement.body, _types(statement.test), templates)
            _add(script, statement.orelse, templates)


def _types(test: ast.expr) -> tuple[str, ...]:
    """The texts that a condition compares with."""
    constants = [node.value for node in ast.walk(test) if isinstance(node, ast.Constant)]
    return tuple(value for value in constants if isinstance(value, str))


def _add_template(
    script: ReleasedScript, body: list[ast.stmt], types: tuple[str, ...], templates: dict[str, str]
) -> None:
    for statement in body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id="template")], value=ast.Constant(value=str(template))
            ):
                _require_fields(script, template, statement.lineno)
                templates.update(dict.fromkeys(types, template))


def _require_fields(script: ReleasedScript, template: str, line: int) -> None:
    """Refuse a template with other fields than `{}`: a name in it could read any attribute."""
    try:
        fields = template_fields(template)
    except ValueError as error:
        raise script.unfit(f"line {line}: {error}") from error
    if fields != [""] * _FIELDS:
        raise script.unfit(f"line {line}: the prompt does not have exactly {_FIELDS} fields {{}}")
