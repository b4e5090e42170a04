"""What every stored record has in common."""

from pydantic import BaseModel, ConfigDict


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
