"""What the reader of the replay is asked."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from memconform.datasets.conversations import Turn
from memconform.llm.chat import ChatRequest, Message
from memconform.replay.date_hints import hint_line
from memconform.replay.evidence import CUT, evidence_text
from memconform.scoring.reader.names import HistoryFormat, Method
from memconform.scoring.reader.passages import Passage
from memconform.scoring.reader.prompts import (
    DATA_NOTE,
    DATE_HINT,
    DECLINES,
    NOTES_FORM,
    NOTES_TOKENS,
    OwnWording,
    fence_evidence,
    question_lines,
)

PROMPT_VERSION = "replay-reader-1"
"""Changed with every change of the wording: cached replies are of a version."""

_SYSTEM = f"""\
You answer a question of a user from what a search of their earlier conversations with an \
assistant returned: parts of the conversations, and facts noted from them, by session with the \
date of each. The date of the question is today.

- Answer from this evidence alone. If it does not contain the answer, or is about something else \
than the question asks, reply "Answer: {DECLINES}" Do not guess.
- If the evidence has several values for one thing, the latest by the dates of the sessions holds, \
unless the question asks for an earlier one.
- To count or to add up, first list each item with its session, once even if several hits name \
it. To compute with dates, first write each date down, worked out from the date of its own session.
- A line "{DATE_HINT}…" was computed from the date of the question. It says when something \
happened, which may be days before it was told of. It is no evidence.
- Where text was left out stands {CUT}
- If the user asks for advice, let it fit what the evidence says of them.
{DATA_NOTE}
First write short notes on what bears on the question, step by step. Then reply with the answer \
alone, as short as it can be complete, on a last line that begins with "Answer:".
"""


@dataclass(frozen=True, slots=True)
class ReplayWording(OwnWording):
    """The prompts of the replay: notes and the answer in one call.

    Notes on single passages are taken as `OwnWording` does.
    """

    method: Method = "direct"
    history: HistoryFormat = "text"

    def answer_request(
        self, question: str, date: str | None, passages: Sequence[Passage] | None
    ) -> ChatRequest:
        """The call that answers."""
        if passages is None:
            return OwnWording.answer_request(self, question, date, None)
        asked = question_lines(question, date, hint_line(question, date))
        user = f"{fence_evidence(evidence_text(passages))}\n\n{asked}"
        return ChatRequest(
            messages=(Message("system", _SYSTEM), Message("user", user)),
            prompt_version=PROMPT_VERSION,
            max_output_tokens=NOTES_TOKENS,
            reply_form=NOTES_FORM,
        )

    def digest(self) -> str:
        """The digest of one call of each kind."""
        passage = Passage("s", "s", "day", (Turn("t", "hit 1, fact", "text", by_user=True),))
        requests = [
            self.answer_request("What did I buy last week?", "2023/05/30 (Tue) 23:40", [passage]),
            self.answer_request("What did I buy last week?", None, None),
            self.note_request("What did I buy last week?", None, passage),
        ]
        return hashlib.sha256(repr(requests).encode()).hexdigest()[:12]
