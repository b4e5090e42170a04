"""Whether a daemon restricts a search to the sessions that a filter names."""

from contextlib import suppress

from memconform.client.failures import CallError, DaemonFailedError
from memconform.contract.core import Filters, SearchRequest
from memconform.contract.wire import Mode
from memconform.daemons.sdk_runner import SdkRunner
from memconform.errors import DaemonError
from memconform.ingest.documents import Document, InMemoryCorpus
from memconform.ingest.seeding import seeded_brain
from memconform.measuring.daemon_session import DaemonSession

_NAMES = ("first", "second", "third")
_WORDS = "The lighthouse keeper counted the ships that passed."


async def honours_session_filter(
    session: DaemonSession, runner: SdkRunner, brain: str, mode: Mode
) -> bool:
    """Whether `filters.sessionIds` selects exactly the documents of a session (core.filter).

    Three documents that match a query alike differ in nothing but the session that their front
    matter names; a search for each session must find its document alone. A daemon may refuse the
    filter; then it does not honour it.

    Raises:
        DaemonError: if the daemon implements another contract, does not index or find the three
            documents, or does not answer.
    """
    await session.require_version()
    documents = [
        Document(
            f"raw/lme/{name}.md",
            f'---\nsession_id: "{name}"\n---\nuser: {_WORDS} {name}\n'.encode(),
            "text/markdown",
        )
        for name in _NAMES
    ]
    corpus = InMemoryCorpus(documents)
    async with seeded_brain(session.client, runner, session.daemon, brain, corpus, [mode]):
        try:
            for name in _NAMES:
                request = SearchRequest(
                    query=_WORDS, top_k=10, mode=mode, filters=Filters(session_ids=[name])
                )
                answer, _ = await session.client.search(brain, request)
                if [chunk.path for chunk in answer.chunks] != [f"raw/lme/{name}.md"]:
                    return False
        except DaemonFailedError as error:
            if error.code != "http_400":
                raise _failed(error) from error
            return False
        except CallError as error:
            raise _failed(error) from error
        finally:
            with suppress(CallError):
                await session.client.delete_brain(brain)
        return True


def _failed(error: CallError) -> DaemonError:
    return DaemonError(
        f"the session filter could not be tried: {error.message}",
        code=error.code,
        hint="memconform doctor tries the daemon step by step",
        excerpt=error.body,
    )
