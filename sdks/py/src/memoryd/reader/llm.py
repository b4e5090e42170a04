"""A reader that asks a language model."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from memoryd.api.bodies import Ask
from memoryd.llm.llm import Chat, Prompt, Usage
from memoryd.prompt.answer import cited
from memoryd.prompt.prompt import READER_SYSTEM, user_message
from memoryd.reader.reader import AnswerEnd
from memoryd.upstream import UpstreamError


class ModelReader:
    """Answers with a language model."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def read(
        self, ask: Ask, chunks: Sequence[dict[str, Any]]
    ) -> AsyncIterator[str | AnswerEnd]:
        prompt = Prompt(
            system=READER_SYSTEM[ask.reader_mode],
            user=user_message(ask.question, chunks, ask.question_date, ask.reader_mode),
            model=ask.model,
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
        yield AnswerEnd(cited(text, len(chunks)), usage)
