"""Base classes of stored records, and records shared by several results."""

from typing import Self

from pydantic import BaseModel, ConfigDict

from memconform.errors import MemconformError


class Record(BaseModel):
    """Frozen model that rejects unknown keys, NaN and infinities."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Failure(Record):
    """Why something was not measured."""

    code: str
    message: str
    body: str = ""
    """The start of what the daemon sent."""
    curl: str = ""
    """A curl command that repeats the request."""
    hint: str = ""
    """What to type so that it is measured; empty if no flag helps."""
    wire: str | None = None
    """File in the run's folder with the transcript of the exchange."""


class Incident(Record):
    """An error that ended or invalidated a whole run."""

    code: str
    message: str
    hint: str
    excerpt: str
    exit_code: int

    @classmethod
    def of(cls, error: MemconformError) -> Self:
        """Record an error."""
        return cls(
            code=error.code,
            message=error.message,
            hint=error.hint,
            excerpt=error.excerpt,
            exit_code=error.exit_code,
        )


class SkipRecord(Record):
    """An SDK that cannot run here or does not claim the requested feature."""

    sdk: str
    reason: str
