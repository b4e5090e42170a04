"""Models of a conformance case file: what a case needs, what it does and what it expects."""

from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from memconform.conformance.disk import Damage, Pages
from memconform.conformance.matcher_validation import check_matcher
from memconform.conformance.matchers import BadMatcherError
from memconform.conformance.request_bodies import AnyContent, Size, Strict
from memconform.conformance.step_result import StreamEnd
from memconform.contract.names import Embedder, Reader
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

_CASE_SECONDS = 60.0
"""How long a case may take besides its waits; the longest wait, for a ping, is 26 s."""

_SUBJECTS = (
    "status", "statuses", "problem", "header", "event", "events", "is", "text", "body", "fold",
    "ids", "ended", "took_ms", "any_of",
)  # fmt: skip


class ProblemSpec(Strict):
    """An error response with a code of the contract and, optionally, a matching detail."""

    code: str
    detail: Any = None
    """A matcher for the problem's `detail`."""

    @field_validator("code")
    @classmethod
    def _require_contract_code(cls, code: str) -> str:
        if code not in STATUS:
            raise ValueError(f"unknown code {code!r}; the contract has {', '.join(STATUS)}")
        return code


class Expectation(Strict):
    """One check: a subject of the response, and what it should be.

    In a case file, a number is short for `status` and a text is short for `problem`.
    """

    status: int | list[int] | None = None
    statuses: Any = None
    """Statuses of all responses on a raw connection, as an array; null for a missing response."""
    problem: ProblemSpec | None = None
    """A problem with this code, its status, and the shape of rule wire.problem."""
    header: str | None = None
    """Name of a header whose value must match `is`."""
    event: str | None = None
    """Name of events whose data, as an array, must match `is` at `at`."""
    at: Pointer | None = None
    """A JSON pointer (`*`: every item), into the body unless `event` is set."""
    is_: Any = Field(default=None, alias="is")
    events: str | None = None
    """A regular expression over event names: `retrieve answer_delta* done`."""
    fold: Any = None
    """The text of all answer_delta events, joined."""
    ids: Literal["rising"] | None = None
    ended: StreamEnd | list[StreamEnd] | None = None
    """How a stream or connection ended: properly (`end`), broken (`cut`) or not at all (`open`)."""
    text: Any = None
    """The body as text."""
    body: AnyContent | None = None
    """The body, compared byte by byte."""
    took_ms: Any = None
    any_of: list["Expectation"] | None = None
    """Alternatives. The first is preferred; any other that holds makes the check a warning."""

    @model_validator(mode="before")
    @classmethod
    def _expand_short_form(cls, raw: JsonValue) -> JsonValue:
        if isinstance(raw, int) and not isinstance(raw, bool):
            return {"status": raw}
        if isinstance(raw, str):
            return {"problem": {"code": raw}}
        if isinstance(raw, dict) and isinstance(raw.get("problem"), str):
            return {**raw, "problem": {"code": raw["problem"]}}
        return raw

    @model_validator(mode="after")
    def _require_one_subject(self) -> Self:
        keys = self._keys()
        if (self.header or self.event) and "is" not in keys:
            raise ValueError("header and event need `is`")
        if self.at is not None and "is" not in keys:
            raise ValueError("`at` needs `is`")
        subjects = [name for name in _SUBJECTS if name in keys]
        if self.header or self.event:
            subjects.remove("is")
        if len(subjects) != 1:
            raise ValueError(f"exactly one of {', '.join(_SUBJECTS)} is required, not {subjects}")
        for matcher in (self.is_, self.fold, self.text, self.took_ms, self.statuses):
            try:
                check_matcher(matcher)
            except BadMatcherError as error:
                raise ValueError(str(error)) from error
        return self

    def _keys(self) -> set[str]:
        return {"is" if name == "is_" else name for name in self.model_fields_set}

    @property
    def subject(self) -> str:
        """The part of the response that is checked: one of the keys of this model."""
        keys = self._keys()
        return next(name for name in _SUBJECTS if name in keys)


class BaseStep(Strict):
    """What all steps have in common."""

    expect: dict[Slug, Expectation] = Field(default_factory=dict)
    require: list[Expectation] = Field(default_factory=list)
    """What must hold for the checks of the case to mean anything. If one does not, the case stops,
    and checks that would pass are untestable."""
    only_if: list[Expectation] = Field(default_factory=list)
    """What must hold for the rest of the case to apply to the daemon. If one does not, the case
    stops, and the checks that it has not made are not applicable."""
    capture: dict[Variable, Pointer] = Field(default_factory=dict)
    """Variables for later steps, as JSON pointers into the body."""

    @property
    def limit_ms(self) -> float:
        """How long it may wait, or the limit that its file gives to its request; 0 for others."""
        return 0


class TimedStep(BaseStep):
    """What all steps that send a request have in common."""

    timeout_ms: Milliseconds = 10_000

    @property
    def limit_ms(self) -> float:
        return self.timeout_ms if "timeout_ms" in self.model_fields_set else 0


class WaitingStep(BaseStep):
    """What all steps that wait for something have in common."""

    within_ms: Milliseconds = 10_000

    @property
    def limit_ms(self) -> float:
        return self.within_ms


class RequestStep(TimedStep):
    """What all steps that send an HTTP request have in common."""

    server: Server = "daemon"
    headers: dict[str, str | list[str]] = Field(default_factory=dict)
    json_: Any = Field(default=None, alias="json")
    text: Any = None
    base64: str | None = None
    size: Size | None = None

    @model_validator(mode="after")
    def _require_one_body(self) -> Self:
        bodies = {"json_", "text", "base64", "size"}.intersection(self.model_fields_set)
        if len(bodies) > 1:
            raise ValueError("at most one of json, text, base64 and size can be the body")
        return self


class HttpStep(RequestStep):
    """Send a request, `METHOD /target` byte by byte, and read the whole response."""

    http: Line


class StreamStep(RequestStep):
    """Send a request and read its response in the background, under a name, until it ends."""

    stream: Line
    name: Variable
    unread: bool = False
    """Never read the response body, like a client that is stuck."""


class AwaitStep(WaitingStep):
    """Wait for the end of a stream, or for `count` events of a name."""

    await_: Variable = Field(alias="await")
    event: str | None = None
    count: int = Field(default=1, ge=1)


class CloseStep(BaseStep):
    """Close a stream before its end, like a client that disconnects."""

    close: Variable


class RawStep(TimedStep):
    """Send bytes, piece by piece, over a connection of its own and read the responses."""

    raw: list[Any] = Field(min_length=1)
    """Texts, or mappings with one of text, base64 and size; no `Host` header is added."""
    pause_ms: float = Field(default=0, ge=0, le=10_000)
    """Pause after each piece."""
    answers: Literal["each", "last", "none"] | int = "each"
    """Read a response after each piece, after the last one, or none; N: N after the last."""
    end: Literal["keep", "half", "abort"] = "keep"
    """After the last piece, keep the connection open, close the sending half, or reset it."""


class StoreStep(BaseStep):
    """Store documents; the last response is the one that is checked.

    `via` is the route to store them by, and may be a variable of the matrix.
    """

    store: dict[str, Any] = Field(min_length=1)
    """Documents by path: a text, or a mapping with one of text, base64 and size, and optionally
    title, tags and metadata."""
    via: Literal["file", "batch", "put", "append", "ops"] = "file"


class DiskStep(BaseStep):
    """Access the daemon's state folder; `read` returns a file's bytes, `list` returns paths."""

    disk: Literal["write", "read", "list", "remove", "remove_folder", "damage", "link", "hard_link"]
    path: str
    """Relative to the state folder; a glob for list, remove and damage."""
    content: AnyContent | None = None
    to: str | None = None
    """Target of a link; `${outside}` is a file outside the state folder. For a hard link, a file
    relative to the state folder."""
    page: Annotated[float, Field(ge=0, le=1)] | Pages = 0
    """For damage: where in each file, from its first page of 4 KiB (0) to its last (1); `later` are
    all but the first."""
    kind: Damage = "noise"
    """For damage: what happens to the page."""


class ProcessStep(WaitingStep):
    """Control or inspect the daemon's process; the result is a `ProcessReport` as JSON."""

    process: Literal[
        "stop", "kill", "start", "restart", "inspect", "second", "fails_to_start",
        "fill_disk", "free_disk",
    ]  # fmt: skip
    """`fill_disk`: until `free_disk`, no process of the daemon can write a file beyond 1 MiB."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables for a start; they take precedence over all others."""
    arguments: list[str] = Field(default_factory=list)
    only_stdout: bool = False
    """For a start or restart: log only what the daemon writes to standard output."""
    without_host: bool = False
    """For a start or restart: the address has no host, as in `--addr :8080`."""


class PauseStep(BaseStep):
    """Do nothing for a while."""

    pause: Milliseconds | Annotated[str, Field(pattern=r"^\$\{[a-z].*\}$")]
    """Milliseconds, or a variable with the milliseconds that something took."""
    share: float = Field(default=1, gt=0, le=10)
    """What is multiplied by them."""

    @property
    def limit_ms(self) -> float:
        return 0 if isinstance(self.pause, str) else self.pause * self.share


class UntilStep(WaitingStep):
    """Repeat steps until all their expectations hold, or the time is up."""

    until: list["Step"] = Field(min_length=1)
    every_ms: Milliseconds = 50


class RepeatStep(BaseStep):
    """Run steps several times; `${index}` counts from 0."""

    repeat: list["Step"] = Field(min_length=1)
    times: int = Field(ge=1, le=10_000)

    @property
    def limit_ms(self) -> float:
        return self.times * sum(step.limit_ms for step in self.repeat)


class ParallelStep(BaseStep):
    """Run branches concurrently, each in `copies` copies; `${index}` is the copy's number."""

    parallel: list[list["Step"]] = Field(min_length=1)
    copies: int = Field(default=1, ge=1, le=1_000)

    @property
    def limit_ms(self) -> float:
        return max(sum(step.limit_ms for step in branch) for branch in self.parallel)


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
        custom_error_message=f"a step needs one of {', '.join(STEPS)}",
    ),
]


class DaemonSettings(Strict):
    """The daemon that a case needs."""

    upstream: Literal["own", "scripted"] = "own"
    """What serves the daemon's model calls: its own fakes, or a scripted upstream."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables for the daemon; they take precedence over all others."""
    alone: bool = False
    """Whether the case has the daemon to itself."""


class Case(Strict):
    """One case, with the values of its matrix filled in."""

    id: Slug
    title: str
    level: Level = "must"
    rules: list[str] = Field(min_length=1)
    """Rule ids of CONTRACT.md; the section of the first rule determines the case's profile."""
    why: str | None = None
    """What goes wrong for users if the case fails."""
    profiles: list[Profile] = Field(default_factory=list)
    """Required profiles, in addition to those of its rules."""
    modes: list[Mode] = Field(default_factory=list)
    """Retrieval modes that a daemon must claim for the case to apply."""
    any_reader: bool = False
    """Whether any reader serves, although the case needs `ask` and the scripted upstream."""
    unclaimed_reader: Reader | None = None
    """The case applies only to daemons that do not claim this reader."""
    unclaimed_embedder: Embedder | None = None
    """The case applies only to daemons that do not claim this embedder."""
    tags: list[Slug] = Field(default_factory=list)
    matrix: dict[Variable, list[Any] | dict[Slug, Any]] = Field(default_factory=dict)
    """Values of each variable, as a list or by label; the case runs for every combination."""
    # Not validated: that would build its schema with every import.
    daemon: DaemonSettings = DaemonSettings.model_construct()
    upstream: Script | None = None
    """What the scripted upstream answers."""
    brain: bool = True
    """Whether a fresh brain is created for the case: `${brain}`, at `${brain_url}`."""
    concurrent: bool = False
    """Whether it runs concurrently with other cases: it waits long and disturbs none of them."""
    documents: dict[str, Any] = Field(default_factory=dict)
    """Documents to store first, as in a `store` step."""
    setup: list[Step] = Field(default_factory=list)
    steps: list[Step] = Field(min_length=1)
    teardown: list[Step] = Field(default_factory=list)

    @property
    def limit_s(self) -> float:
        """Its time limit in seconds.

        One that writes 6,144 documents took 67 s on a busy machine, each step within its own limit.
        """
        return _CASE_SECONDS + sum(step.limit_ms for step in (*self.setup, *self.steps)) / 1e3

    @model_validator(mode="after")
    def _require_consistent_upstream(self) -> Self:
        if self.upstream is not None and self.daemon.upstream != "scripted":
            raise ValueError("an upstream script needs `daemon: {upstream: scripted}`")
        if self.concurrent and self.daemon.upstream == "scripted":
            raise ValueError(
                "a concurrent case cannot use a scripted upstream, which has one script at a time"
            )
        return self
