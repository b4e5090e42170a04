"""The Python daemon with one planted fault each, for `--sdk tests.negative.faulty:NAME`."""

from pathlib import Path

from memconform.conformance.mutation.mutant_runner import MutantRunner
from memconform.conformance.mutation.mutation import Mutation, SourceEdit
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner

# Not that of `tests`: the program imports this module, and pytest with it would take as long again.
CHECKOUT = Path(__file__).parents[3]


class Faulty(MutantRunner):
    file: str
    find: str
    put: str

    @classmethod
    def edit(cls) -> SourceEdit:
        return SourceEdit(file=f"memoryd/{cls.file}", find=cls.find, put=cls.put)

    def __init__(self) -> None:
        folder = CHECKOUT / "sdks" / "py"
        good = ManifestRunner(load_manifest(folder / "sdk.toml"), folder)
        super().__init__(good, Mutation(source={"py": [self.edit()]}))
        self.name = "faulty"


class DropsLastChunk(Faulty):
    """The last chunk of a document that is cut into chunks cannot be found."""

    file = "chunk.py"
    find = "    chunks.append(data[start:].decode())\n"
    put = ""


class OneTooFew(Faulty):
    """Answers topK - 1 chunks, but one where one is asked for."""

    file = "retrieve/retrieve.py"
    find = "return chunks[: plan.top_k]"
    put = "return chunks[: max(1, plan.top_k - 1)]"


class OtherStopWords(Faulty):
    """Its reader takes more words for words that say nothing."""

    file = "text/stop_words.py"
    find = "read_text().split()"
    put = "read_text().split() + 'who which many much long first'.split()"


class IgnoresDates(Faulty):
    """Its reader is not told when a question is asked."""

    file = "prompt/prompt.py"
    find = "if question_date else"
    put = "if False else"


class OneInTwentyEmpty(Faulty):
    """Finds nothing for one question in twenty, by its hash.

    For a question alone: the words by which an index is proven would be lost as well, and nothing
    be measured.
    """

    file = "retrieve/retrieve.py"
    find = "plan, chunks = self._search(brain, request)"
    put = (
        "import zlib; query = request.query;"
        " struck = query.endswith('?') and zlib.crc32(query.encode()) % 20 == 0;"
        " plan, chunks = self._search(brain, request);"
        " chunks = [] if struck else chunks"
    )
