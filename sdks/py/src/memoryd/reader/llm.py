"""A reader that asks a language model."""

from collections.abc import AsyncIterator

from memoryd.llm.llm import ChatModel, Prompt, Usage
from memoryd.prompt.answer import cited
from memoryd.prompt.prompt import READER_SYSTEM, user_message
from memoryd.reader.reader import AnswerEnd, Question
from memoryd.upstream import UpstreamError


class LLMReader:
    """Answers with a language model."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    async def read(self, question: Question) -> AsyncIterator[str | AnswerEnd]:
        prompt = Prompt(
            system=READER_SYSTEM[question.mode],
            user=user_message(question.text, question.notes, question.date, question.mode),
            model=question.model,
        )
        pieces: list[str] = []
        usage = None
        async for piece in self._chat.stream(prompt):
            if isinstance(piece, Usage):
                usage = piece
            else:
                pieces.append(piece)
                yield piece
        text = "".join(pieces)
        if not text.strip():
            raise UpstreamError("bad_gateway", "the model returned no text")
        yield AnswerEnd(cited(text, len(question.notes)), usage)
