"""What the reader is shown without a daemon: perfect retrieval, or no retrieval at all."""

from memconform.replay.daemon import Retrieved
from memconform.replay.documents import PlacedSession
from memconform.replay.hits import Hit
from memconform.replay.plan import ReplayControl, ReplayPlan
from memconform.replay.records import ReplayRetrieval
from memconform.replay.retrieval_record import retrieval_record


class ControlRecords:
    """The sessions with the answer, or all sessions from the newest, as if they were hits."""

    def __init__(self, plan: ReplayPlan, control: ReplayControl) -> None:
        self._plan = plan
        self._control = control
        self._questions = {question.id: question for question in plan.questions}

    def __getitem__(self, name: str) -> ReplayRetrieval:
        question = self._questions[name]
        brain = self._plan.sessions
        placed = [brain.sessions[path] for path in brain.paths[name]]
        if self._control == "oracle":
            placed = [each for each in placed if each.session.id in question.gold]
        else:
            # As in LongMemEval's own long-context runs, what has no room is the oldest.
            placed.sort(key=lambda each: each.date, reverse=True)
        hits = tuple(_hit(rank, each) for rank, each in enumerate(placed, start=1))
        return retrieval_record(name, Retrieved(hits))

    def __contains__(self, name: object) -> bool:
        return name in self._questions


def _hit(rank: int, placed: PlacedSession) -> Hit:
    session = placed.session
    text = "\n\n".join(f"{turn.speaker}: {turn.text.strip()}" for turn in session.turns)
    return Hit(rank, placed.path, "session", session.id, session.date, 0.0, text)
