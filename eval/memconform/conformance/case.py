"""A conformance case as its file has it: what it needs, what it does, what it expects."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from memconform.conformance.bodies import AnyContent, Size, Strict
from memconform.conformance.matchers import BadMatcherError, check_matcher
from memconform.conformance.step_result import Ended
from memconform.contract.problem import STATUS
from memconform.contract.wire import JsonValue, Mode, Profile
from memconform.upstream.script import Script

Slug = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]
Variable = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Pointer = Annotated[str, Field(pattern=r"^(/.*)?$")]
Line = Annotated[str, Field(pattern=r"^[A-Z]+ (/|\$\{)\S*$")]
Level = Literal["must", "should", "may"]
Server = Literal["daemon", "second", "upstream"]
Milliseconds = Annotated[float, Field(gt=0, le=60_000)]

_SUBJECTS = (
    "status", "statuses", "problem", "header", "event", "events", "is", "text", "body", "fold",
    "ids", "ended", "took_ms", "any_of",
)  # fmt: skip


class ProblemSpec(Strict):
    code: str
    detail: Any = None
    """A matcher."""

    @field_validator("code")
    @classmethod
    def _known(cls, code: str) -> str:
        if code not in STATUS:
            raise ValueError(f"no code {code!r}; the contract has {', '.join(STATUS)}")
        return code


class Expectation(Strict):
    """One check: a subject of what came, and what it should be.

    In a case a number stands for `status`, and a text for `problem`.
    """

    status: int | list[int] | None = None
    statuses: Any = None
    """Those of all answers on a raw connection, as an array; null where none came."""
    problem: ProblemSpec | None = None
    """A problem with that code, its status, and the shape that rule wire.problem has."""
    header: str | None = None
    """The header of that name is as `is` has it."""
    event: str | None = None
    """The data of all events of that name, as an array; `at` and `is` say what of it."""
    at: Pointer | None = None
    """A JSON pointer (`*`: every item); without another subject, into the body as JSON."""
    is_: Any = Field(default=None, alias="is")
    events: str | None = None
    """A regular expression whose letters are names of events: `retrieve answer_delta* done`."""
    fold: Any = None
    """The text of all answer_delta events, joined."""
    ids: Literal["rising"] | None = None
    ended: Ended | list[Ended] | None = None
    """How a stream or connection ended: properly, broken, or not at all."""
    text: Any = None
    """The body as text."""
    body: AnyContent | None = None
    """The body byte by byte."""
    took_ms: Any = None
    any_of: list["Expectation"] | None = None
    """The first is preferred; another that holds makes the check a warning."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, given: JsonValue) -> JsonValue:
        if isinstance(given, int) and not isinstance(given, bool):
            return {"status": given}
        if isinstance(given, str):
            return {"problem": {"code": given}}
        if isinstance(given, dict) and isinstance(given.get("problem"), str):
            return {**given, "problem": {"code": given["problem"]}}
        return given

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        given = self._given()
        if (self.header or self.event) and "is" not in given:
            raise ValueError("header and event want `is`")
        if self.at is not None and "is" not in given:
            raise ValueError("`at` needs `is`")
        subjects = [name for name in _SUBJECTS if name in given]
        if self.header or self.event:
            subjects.remove("is")
        if len(subjects) != 1:
            raise ValueError(f"one of {', '.join(_SUBJECTS)} is wanted, not {subjects}")
        for matcher in (self.is_, self.fold, self.text, self.took_ms, self.statuses):
            try:
                check_matcher(matcher)
            except BadMatcherError as error:
                raise ValueError(str(error)) from error
        return self

    def _given(self) -> set[str]:
        return {"is" if name == "is_" else name for name in self.model_fields_set}

    @property
    def subject(self) -> str:
        """What of the outcome it is about: one of its keys."""
        given = self._given()
        return next(name for name in _SUBJECTS if name in given)


class BaseStep(Strict):
    expect: dict[Slug, Expectation] = Field(default_factory=dict)
    capture: dict[Variable, Pointer] = Field(default_factory=dict)
    """Variables for later steps, by JSON pointers into the body."""


class RequestStep(BaseStep):
    server: Server = "daemon"
    headers: dict[str, str | list[str]] = Field(default_factory=dict)
    json_: Any = Field(default=None, alias="json")
    text: Any = None
    base64: str | None = None
    size: Size | None = None
    timeout_ms: Milliseconds = 10_000

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        bodies = {"json_", "text", "base64", "size"}.intersection(self.model_fields_set)
        if len(bodies) > 1:
            raise ValueError("one of json, text, base64 and size is the body")
        return self


class HttpStep(RequestStep):
    """A request, `METHOD /target` byte by byte, and its whole answer."""

    http: Line


class StreamStep(RequestStep):
    """A request whose answer is read in the background, under a name, until it ends."""

    stream: Line
    name: Variable
    unread: bool = False
    """Never take a byte of the answer's body, as a reader that is stuck."""


class AwaitStep(BaseStep):
    """Wait for a stream: for its end, or for so many events of a name."""

    await_: Variable = Field(alias="await")
    event: str | None = None
    count: int = Field(default=1, ge=1)
    within_ms: Milliseconds = 10_000


class CloseStep(BaseStep):
    """Leave a stream before its end, as a client that goes away."""

    close: Variable


class RawStep(BaseStep):
    """Bytes over a connection of its own: each piece is sent, and an answer is read behind it."""

    raw: list[Any] = Field(min_length=1)
    """Texts, or mappings with one of text, base64 and size; `Host: ${host}` is not added."""
    pause_ms: float = Field(default=0, ge=0, le=10_000)
    """Behind each piece, before the next or the end."""
    answers: Literal["each", "last", "none"] | int = "each"
    """Read an answer behind each piece, behind the last one, none, or so many behind the last."""
    end: Literal["keep", "half", "abort"] = "keep"
    """After the last piece: leave the connection open, close our half, or reset it."""
    timeout_ms: Milliseconds = 10_000


class StoreStep(BaseStep):
    """Documents, by a way in that may be a variable of the matrix; the last answer counts."""

    store: dict[str, Any] = Field(min_length=1)
    """By path: a text, or a mapping with one of text, base64, size, and title, tags, metadata."""
    via: Literal["file", "batch", "put", "append", "ops"] = "file"


class DiskStep(BaseStep):
    """A file of the daemon's state folder; `read` brings its bytes, `list` its paths."""

    disk: Literal["write", "read", "list", "remove", "damage", "link"]
    path: str
    """Below the state folder; with list, remove and damage a glob."""
    content: AnyContent | None = None
    to: str | None = None
    """What a link points to; `${outside}` is a file that is no part of the state."""


class ProcessStep(BaseStep):
    """The daemon's process. What it brings is an object: see `ProcessReport`."""

    process: Literal["stop", "kill", "start", "restart", "inspect", "second", "fails_to_start"]
    env: dict[str, str] = Field(default_factory=dict)
    """Variables for a start, before all others."""
    arguments: list[str] = Field(default_factory=list)
    only_stdout: bool = False
    """Of a restart: its log is then what it writes to standard output."""
    within_ms: Milliseconds = 10_000


class PauseStep(BaseStep):
    pause: Milliseconds


class UntilStep(BaseStep):
    """Steps again and again until all they expect holds, or the time is up."""

    until: list["Step"] = Field(min_length=1)
    within_ms: Milliseconds = 10_000
    every_ms: Milliseconds = 50


class RepeatStep(BaseStep):
    """Steps several times; `${index}` counts from 0."""

    repeat: list["Step"] = Field(min_length=1)
    times: int = Field(ge=1, le=10_000)


class ParallelStep(BaseStep):
    """Branches at once, each so many times; `${index}` is the copy's number."""

    parallel: list[list["Step"]] = Field(min_length=1)
    copies: int = Field(default=1, ge=1, le=1_000)


STEPS: dict[str, type[BaseStep]] = {
    "http": HttpStep,
    "stream": StreamStep,
    "await": AwaitStep,
    "close": CloseStep,
    "raw": RawStep,
    "store": StoreStep,
    "disk": DiskStep,
    "process": ProcessStep,
    "pause": PauseStep,
    "until": UntilStep,
    "repeat": RepeatStep,
    "parallel": ParallelStep,
}


def _kind(step: JsonValue) -> str | None:
    if isinstance(step, dict):
        return next((name for name in STEPS if name in step), None)
    return next((name for name, model in STEPS.items() if type(step) is model), None)


Step = Annotated[
    Annotated[HttpStep, Tag("http")]
    | Annotated[StreamStep, Tag("stream")]
    | Annotated[AwaitStep, Tag("await")]
    | Annotated[CloseStep, Tag("close")]
    | Annotated[RawStep, Tag("raw")]
    | Annotated[StoreStep, Tag("store")]
    | Annotated[DiskStep, Tag("disk")]
    | Annotated[ProcessStep, Tag("process")]
    | Annotated[PauseStep, Tag("pause")]
    | Annotated[UntilStep, Tag("until")]
    | Annotated[RepeatStep, Tag("repeat")]
    | Annotated[ParallelStep, Tag("parallel")],
    Discriminator(
        _kind,
        custom_error_type="unknown_step",
        custom_error_message=f"a step has one of {', '.join(STEPS)}",
    ),
]


class Serving(Strict):
    """The daemon that a case wants."""

    upstream: Literal["own", "scripted"] = "own"
    """What answers its calls: its own fakes, or an upstream that goes by a script."""
    env: dict[str, str] = Field(default_factory=dict)
    """Variables for the daemon, before all others."""
    alone: bool = False
    """No other case has it before, meanwhile or after."""


class Case(Strict):
    """One case, its matrix filled in."""

    id: Slug
    title: str
    level: Level = "must"
    rules: list[str] = Field(min_length=1)
    """Ids of CONTRACT.md; the section of the first is the case's own."""
    why: str | None = None
    """What goes wrong for users where it fails."""
    profiles: list[Profile] = Field(default_factory=list)
    """Beside those of its rules."""
    modes: list[Mode] = Field(default_factory=list)
    """Retrieval modes that a daemon must claim for it to apply."""
    tags: list[Slug] = Field(default_factory=list)
    matrix: dict[Variable, list[Any] | dict[Slug, Any]] = Field(default_factory=dict)
    """Values by name, or a list of values that are names; the case runs for every combination."""
    daemon: Serving = Serving()
    upstream: Script | None = None
    """What the upstream answers with."""
    brain: bool = True
    """Whether a fresh brain is made for it: `${brain}`, with `${brain_url}` its address."""
    concurrent: bool = False
    """It waits long and disturbs nobody: it runs beside the others."""
    documents: dict[str, Any] = Field(default_factory=dict)
    """Stored first, as by a `store` step."""
    setup: list[Step] = Field(default_factory=list)
    steps: list[Step] = Field(min_length=1)
    teardown: list[Step] = Field(default_factory=list)

    @model_validator(mode="after")
    def _scripted_where_it_says(self) -> Self:
        if self.upstream is not None and self.daemon.upstream != "scripted":
            raise ValueError("an upstream script needs `daemon: {upstream: scripted}`")
        if self.concurrent and self.daemon.upstream == "scripted":
            raise ValueError("the upstream has one script at a time: no case beside others has one")
        return self
