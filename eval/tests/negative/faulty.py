"""The Python daemon with one planted fault each, for `--sdk tests.negative.faulty:NAME`."""

from pathlib import Path

from memconform.conformance.mutation.mutant_runner import MutantRunner
from memconform.conformance.mutation.mutation import Mutation, SourceEdit
from memconform.daemons.manifest import load_manifest
from memconform.daemons.manifest_runner import ManifestRunner

# Not that of `tests`: the program imports this module, and pytest with it would take as long again.
CHECKOUT = Path(__file__).parents[3]


class _Faulty(MutantRunner):
    file: str
    find: str
    put: str

    def __init__(self) -> None:
        folder = CHECKOUT / "sdks" / "py"
        edit = SourceEdit(file=f"memoryd/{self.file}", find=self.find, put=self.put)
        good = ManifestRunner(load_manifest(folder / "sdk.toml"), folder)
        super().__init__(good, Mutation(source={"py": [edit]}))
        self.name = "faulty"


class DropsLastChunk(_Faulty):
    """The last chunk of a document that is cut into chunks cannot be found."""

    file = "chunk.py"
    find = "    chunks.append(data[start:].decode())\n"
    put = ""


class OneTooFew(_Faulty):
    """Answers topK - 1 chunks, but one where one is asked for."""

    file = "retrieve/retrieve.py"
    find = "return chunks[: plan.top_k]"
    put = "return chunks[: max(1, plan.top_k - 1)]"


class OtherStopWords(_Faulty):
    """Its reader takes more words for words that say nothing."""

    file = "reader/fake.py"
    find = "read_text().split()"
    put = "read_text().split() + 'who which many much long first'.split()"


class IgnoresDates(_Faulty):
    """Its reader is not told when a question is asked."""

    file = "prompt/prompt.py"
    find = "if question_date else"
    put = "if False else"


class OneInTwentyEmpty(_Faulty):
    """Finds nothing for one question in twenty, by its hash.

    For a question alone: the words by which an index is proven would be lost as well, and nothing
    be measured.
    """

    file = "retrieve/retrieve.py"
    find = "chunks = self._chunks(brain, request, plan)"
    put = (
        "import zlib; query = request.query;"
        " struck = query.endswith('?') and zlib.crc32(query.encode()) % 20 == 0;"
        " chunks = [] if struck"
        " else self._chunks(brain, request, plan)"
    )
