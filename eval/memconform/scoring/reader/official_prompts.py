"""LongMemEval's reader, its texts read from a copy of its released script, which is never executed.

The script is src/generation/run_generation.py. How it puts a prompt together is repeated here, and
held to what it returns on the real file.
"""

import ast
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from memconform.datasets.conversations import Turn
from memconform.datasets.released_script import ReleasedScript, template_fields
from memconform.llm.chat import ChatRequest, Message
from memconform.scoring.reader.names import HistoryFormat, Method
from memconform.scoring.reader.passages import Passage
from memconform.scoring.reader.prompts import require_no_echo

FUNCTION: Final = "prepare_prompt"
_SUMMARY: Final = "session_summary"
"""The key under which the script shows notes, which take the place of the turns."""
_WITHOUT_MEMORY: Final = "the answer"
_ANSWER_TOKENS: Final = {"direct": 500, "con": 800, "con-separate": 800}
_NOTE_TOKENS: Final = 500
_HINT: Final = "give LongMemEval's src/generation/run_generation.py, or use --prompts own"


@dataclass(frozen=True, slots=True)
class ScriptTexts:
    """The texts of the script, with a field `{}` for each value."""

    direct: str
    """History, date, question."""
    stepwise: str
    """Likewise, asking for notes before the answer."""
    note: str
    """Date and content of a session, date of the question, question."""
    session: str
    """Number, date, content."""
    turn: str
    """Role, content."""
    without_memory: str
    """Question."""
    without_memory_stepwise: str


@dataclass(frozen=True, slots=True)
class OfficialWording:
    """The released prompts, one user message each; nothing is left out or cut."""

    texts: ScriptTexts
    method: Method
    history: HistoryFormat
    name: Literal["own", "official"] = "official"

    def answer_request(
        self, question: str, date: str | None, passages: Sequence[Passage] | None
    ) -> ChatRequest:
        """The call that answers; passages of one date keep their order."""
        direct = self.method == "direct"
        if passages is None:
            template = self.texts.without_memory if direct else self.texts.without_memory_stepwise
            limit = _ANSWER_TOKENS[self.method]
            return self._request(template.format(question), limit, form=_WITHOUT_MEMORY)
        ordered = sorted(passages, key=lambda passage: passage.date)
        history = "".join(
            self.texts.session.format(number, passage.date, self._content(passage))
            for number, passage in enumerate(ordered, start=1)
        )
        template = self.texts.direct if direct else self.texts.stepwise
        text = template.format(history, date, question)
        return self._request(text, _ANSWER_TOKENS[self.method])

    def parse_answer(self, request: ChatRequest, text: str) -> str:
        """All of the reply, as the script takes it; raises ValueError if it repeats the prompt.

        Without memory the prompt is the question, which an answer may well repeat.
        """
        if request.reply_form != _WITHOUT_MEMORY:
            require_no_echo(request, text)
        return text.strip()

    def note_request(self, question: str, date: str | None, passage: Passage) -> ChatRequest:
        """The call that takes notes on one passage."""
        content = json.dumps(_turns(passage))
        text = self.texts.note.format(passage.date, content, date, question)
        return self._request(text, _NOTE_TOKENS)

    def apply_note(self, passage: Passage, note: str) -> Passage:
        """The notes in place of the passage, also if they say that there is nothing."""
        turn = Turn(passage.id, _SUMMARY, note, by_user=True)
        return Passage(passage.id, passage.session, passage.date, (turn,), passage.position)

    def digest(self) -> str:
        """The digest of the texts."""
        return hashlib.sha256(repr((self.texts, self.method, self.history)).encode()).hexdigest()[
            :12
        ]

    def _content(self, passage: Passage) -> str:
        if self.history == "json":
            is_note = passage.turns[0].speaker == _SUMMARY
            content = {_SUMMARY: passage.turns[0].text} if is_note else _turns(passage)
            return "\n" + json.dumps(content)
        return "".join(
            self.texts.turn.format(turn.speaker, turn.text.strip()) for turn in passage.turns
        )

    def _request(
        self, text: str, max_output_tokens: int, form: str = "the answer, in the form asked for"
    ) -> ChatRequest:
        return ChatRequest(
            messages=(Message("user", text),),
            prompt_version=f"official-{self.digest()}",
            max_output_tokens=max_output_tokens,
            reply_form=form,
        )


def _turns(passage: Passage) -> list[dict[str, str]]:
    return [{"role": turn.speaker, "content": turn.text} for turn in passage.turns]


def read_script_texts(script: Path) -> ScriptTexts:
    """The texts in `prepare_prompt` of a copy of run_generation.py.

    Only its syntax tree is read.

    Raises:
        UsageError: `bad_prompt_script`, naming what is missing; `dataset_unreadable`.
    """
    released = ReleasedScript(script, _HINT)
    texts = list(_texts(released.function(FUNCTION)))

    def one(variable: str, fields: int, number: int = 0) -> str:
        found = [text for name, text in texts if name == variable and _fields(text) == fields]
        if len(found) <= number:
            raise released.unfit(f"{FUNCTION} has no text of {fields} fields {{}} for {variable}")
        return found[number]

    # With `cot`, and otherwise: the first two are of histories without generated facts.
    without_memory = one("answer_prompt_template", 1)
    return ScriptTexts(
        direct=one("answer_prompt_template", 3, 1),
        stepwise=one("answer_prompt_template", 3, 0),
        note=one("con_prompt", 4),
        session=one("history_string", 3),
        turn=one("sess_string", 2),
        without_memory=without_memory,
        without_memory_stepwise=without_memory + one("answer_prompt_template", 0),
    )


def _texts(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Each text with the variable that it goes into, in their order in the script."""
    statements = [n for n in ast.walk(function) if isinstance(n, ast.Assign | ast.AugAssign)]
    for statement in sorted(statements, key=lambda statement: statement.lineno):
        target = statement.target if isinstance(statement, ast.AugAssign) else statement.targets[0]
        match target, statement.value:
            case ast.Name(id=name), ast.Constant(value=str(text)):
                yield name, text
            case (
                ast.Name(id=name),
                ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")),
            ):
                yield name, text


def _fields(text: str) -> int | None:
    """How many fields `{}` a text has; None with other fields, which could read attributes."""
    try:
        fields = template_fields(text)
    except ValueError:
        return None
    return None if fields is None or any(fields) else len(fields)
