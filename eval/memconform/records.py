"""What every stored record has in common."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from memconform.errors import MemconformError


class Record(BaseModel):
    """Unknown keys are refused: a result says just what its schema says."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Failure(Record):
    """Why something was not measured."""

    code: str
    message: str
    body: str = ""
    """What the daemon did send, cut."""
    curl: str = ""
    """A command that repeats the request."""
    wire: str | None = None
    """The transcript of the exchange, a file in the run's folder."""


class Incident(Record):
    """What ended or invalidated a run as a whole."""

    code: str
    message: str
    hint: str
    excerpt: str
    exit_code: int

    @classmethod
    def of(cls, error: MemconformError) -> Self:
        return cls(
            code=error.code,
            message=error.message,
            hint=error.hint,
            excerpt=error.excerpt,
            exit_code=error.exit_code,
        )


class SkipRecord(Record):
    """An SDK of `--sdk all` that cannot run here, or does not claim what is asked."""

    sdk: str
    reason: str
