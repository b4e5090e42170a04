"""The rubrics with prompts of memconform's own, by the name that `--rubric` takes."""

from collections.abc import Mapping

from memconform.scoring.judge.lenient import LenientRubric
from memconform.scoring.judge.longmemeval import LongMemEvalRubric
from memconform.scoring.judge.rubric import STRICT, Rubric

OWN_RUBRICS: Mapping[str, Rubric] = {
    "lenient": LenientRubric(),
    "longmemeval": LongMemEvalRubric(),
    "strict": STRICT,
}
