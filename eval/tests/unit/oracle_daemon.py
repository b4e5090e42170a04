"""A daemon for tests that answers as the oracle predicts, but for a planted defect."""

from collections.abc import Callable
from typing import Any

from memconform.fuzzing.expectations import nearest_answer, option_of
from memconform.fuzzing.failures import FuzzTarget
from memconform.fuzzing.normalized_answer import ProgramAnswer
from memconform.fuzzing.program_runner import fill_brain
from memconform.fuzzing.programs import BRAIN, RESTARTED, RESTARTS, Call, Program
from memconform.oracle.daemon import OracleDaemon
from memconform.oracle.predictions import ANYTHING, Option
from memconform.oracle.search import Providers

Defect = Callable[[Call, ProgramAnswer], ProgramAnswer]

_BRAIN = "mc-oracle"


def answers(program: Program, defect: Defect = lambda _, answer: answer) -> list[ProgramAnswer]:
    """Run a program on the oracle, and break its answers."""
    oracle = OracleDaemon(Providers())
    oracle.create(_BRAIN)
    first = oracle.brain(_BRAIN)
    assert first is not None
    result = []
    for call in program.calls:
        if call.route in RESTARTS:
            result.append(ProgramAnswer(RESTARTED))
            continue
        body = call.body if isinstance(call.body, bytes) else fill_brain(call.body, _BRAIN)
        target = call.target.replace(BRAIN, _BRAIN)
        prediction = oracle.predict(call.method, target, body, call.headers)
        option = option_of(prediction, call, None) if prediction else Option(200, "", body=ANYTHING)
        option.apply()
        answer = nearest_answer(option, ProgramAnswer(option.status))
        result.append(defect(call, answer))
    if program.listens:
        changes = first.documents.changes
        events: list[Any] = [["ready", "ok", ""]]
        for change in changes:
            data = {"kind": change.kind, "path": change.path}
            data |= {"old_path": change.old_path} if change.old_path is not None else {}
            data |= {"reason": change.reason} if change.reason is not None else {}
            events.append(["change", data, "rising"])
        stream = ProgramAnswer(
            200, "text/event-stream", (("cache-control", ("no-store",)),), [*events]
        )
        result.append(defect(Call("events", "GET", ""), stream))
    return result


class OracleRunner:
    """Takes the place of a ProgramRunner; `defect` is set by the test."""

    defect: Defect = staticmethod(lambda _, answer: answer)

    def __init__(self, target: FuzzTarget) -> None:
        del target
        self.resets: dict[str, int] = {}

    def run(self, program: Program) -> list[ProgramAnswer]:
        return answers(program, type(self).defect)

    def close(self) -> None:
        pass
