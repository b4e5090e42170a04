"""What a report of one document is about: of two about the same thing, the later one is current."""

from pydantic import BaseModel

from memconform.bench.records import BenchReport
from memconform.conformance.mutation.results import MutationReport
from memconform.conformance.results import ConformReport
from memconform.load.records import LoadReport
from memconform.replay.records import LmeResult

_OF_A_LOAD = {"dataset_sha256", "questions", "mode", "top_k", "upstream", "duration_s", "mix"}
"""Settings of two loads that measure the same."""


def subject(document: BaseModel) -> object:
    """A key that documents about the same thing share; others have one of their own.

    Programs of `fuzz` and comparisons of runs never repeat what an earlier one did.
    """
    match document:
        case ConformReport():
            cases = frozenset(case.case for sdk in document.sdks for case in sdk.cases)
            return "conform", tuple(sorted(sdk.sdk for sdk in document.sdks)), cases
        case MutationReport():
            return "mutation", document.sdk, frozenset(mutant.id for mutant in document.mutants)
        case BenchReport():
            systems = tuple(sorted((row.system, row.strategy) for row in document.rows))
            settings = document.settings
            return "bench", settings.asked(), settings.index, tuple(settings.ks), systems
        case LoadReport():
            what = document.model_dump_json(include=_OF_A_LOAD)
            steps = tuple(
                (s.sdk, step.rate, step.workers) for s in document.sdks for step in s.steps
            )
            return "load", what, steps
        case LmeResult():
            return "replay", document.sdk, document.settings.model_dump_json()
        case _:
            return id(document)
