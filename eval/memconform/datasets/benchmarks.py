"""The formats of retrieval benchmarks, and how a file's format is recognized."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from memconform.datasets.files import PACKED, PieceReader, unfit
from memconform.datasets.haystacks import Haystack
from memconform.datasets.json_array import array_or_lines, elements
from memconform.datasets.jsonl import has_row
from memconform.datasets.locomo import read_locomo
from memconform.datasets.locomo import session_of as locomo_session
from memconform.datasets.longmemeval import official_gold, official_sessions, read_longmemeval
from memconform.datasets.longmemeval import session_of as longmemeval_session
from memconform.datasets.memini import read_memini
from memconform.datasets.question_set import read_question_set
from memconform.datasets.wmb import QUESTIONS, by_category, found, read_wmb
from memconform.errors import UsageError, nearest

ENTRY_POINTS = "memconform.benchmarks"
"""The entry point group in which other packages register a `Format`."""

_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Format:
    """A benchmark's file format: how to recognize and read it."""

    name: str
    about: str
    read: Callable[..., Iterator[Haystack]]
    """Reads a PieceReader or a folder; each option is a keyword argument."""
    fits: Callable[[Path], bool]
    """Whether a path looks like this format; may raise only UsageError."""
    options: Mapping[str, tuple[str, ...]]
    """The allowed values of each option; the first is the default."""
    is_folder: bool = False
    only_with: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Options that require another option to have a given value: its name and the value."""
    official_gold: Callable[[Haystack], tuple[str, ...]] | None = None
    """For haystacks with one question each, its gold by the official retrieval metrics; empty if
    they skip it. None if the benchmark has no official retrieval metrics."""
    official_sessions: Callable[[Haystack], Mapping[str, str]] | None = None
    """The session of each turn, by which the official metrics also score rankings of turns."""
    by_category: Callable[..., Iterator[Haystack]] | None = None
    """Splits haystacks into one for each category, with `every=True` also for the second category
    of a query; None if no query belongs to a part of a haystack."""
    item_of: Callable[[str, Mapping[str, str]], str] | None = None
    """The item that contains a turn, by the turn's id and the options; None if turns are items."""


_LEVELS = ("turn", "session")


def _first_keys(path: Path) -> frozenset[str]:
    """The keys of a file's first element; empty unless it has an array, or lines, of objects."""
    # memini's file is one object, which may be large.
    if path.is_dir() or _has_items(path):
        return frozenset()
    with PieceReader(path) as source:
        try:
            first = next(array_or_lines(source), None)
        except UsageError:
            return frozenset()
    return frozenset(first) if isinstance(first, dict) else frozenset()


def _has_items(path: Path) -> bool:
    if path.is_dir():
        return False
    with PieceReader(path) as source:
        head = source.read(_HEAD).lstrip()
    return head.startswith(b"{") and (b'"items"' in head or b'"questions"' in head)


def _has_rows(path: Path) -> bool:
    """Whether the first line that is not a comment is a row of a question set, or starts one."""
    if path.is_dir() or path.suffix in PACKED:
        return False
    with PieceReader(path) as source:
        head = source.read(_HEAD).decode("utf-8", "replace")
    line = next(filter(has_row, head.split("\n")), "").lstrip()
    try:
        row = json.loads(line)
    except RecursionError:
        return False
    except ValueError:
        return line.startswith("{") and '"id"' in line and '"question"' in line
    return isinstance(row, dict) and {"id", "question"} <= row.keys()


_BUILT_IN = (
    Format(
        "locomo",
        "LoCoMo, locomo10.json: ten conversations; an item is a turn or a session",
        read_locomo,
        lambda path: {"qa", "conversation"} <= _first_keys(path),
        {"level": _LEVELS},
        item_of=lambda turn, options: turn if options["level"] == "turn" else locomo_session(turn),
    ),
    Format(
        "longmemeval",
        "LongMemEval, oracle, S or M: one haystack of chat sessions per question",
        read_longmemeval,
        lambda path: {"question_id", "haystack_sessions"} <= _first_keys(path),
        {"level": ("session", "turn"), "session_doc": ("full", "user-only", "dated", "official")},
        only_with={"session_doc": ("level", "session")},
        official_gold=official_gold,
        official_sessions=official_sessions,
        item_of=lambda turn, options: (
            turn if options["level"] == "turn" else longmemeval_session(turn)
        ),
    ),
    Format(
        "wmb",
        "WMB-100K, the folder that holds datasets/ and documents/",
        read_wmb,
        lambda path: bool(found(path, QUESTIONS)),
        {"part": ("B", "A", "both")},
        is_folder=True,
        by_category=by_category,
    ),
    # Before memini, because a row may have the tag "items".
    Format(
        "jsonl",
        "a question set of memconform, NAME.jsonl, with its documents in NAME/corpus/",
        read_question_set,
        _has_rows,
        {},
    ),
    Format(
        "memini",
        "memini's {name, items, questions}",
        read_memini,
        _has_items,
        {},
    ),
)


@cache
def formats() -> dict[str, Format]:
    """All formats by name: built-in ones, and those of other packages, which take precedence.

    Raises:
        UsageError: if an entry point is not a `Format` (`bad_entry_point`).
    """
    by_name = {each.name: each for each in _BUILT_IN}
    for point in entry_points(group=ENTRY_POINTS):
        loaded = point.load()
        if not isinstance(loaded, Format):
            raise UsageError(
                f"the entry point {point.name!r} of {ENTRY_POINTS} is not a Format",
                code="bad_entry_point",
                hint=f"it refers to {point.value}",
            )
        by_name[loaded.name] = loaded
    return by_name


@dataclass(slots=True)
class Benchmark:
    """A benchmark's file or folder with its format and options."""

    path: Path
    format: Format
    options: Mapping[str, str]
    transform: Callable[[Iterator[Haystack]], Iterator[Haystack]] = iter
    """A transformation of its haystacks, such as key expansion."""
    sha256: str = ""
    """Digest of the file's decompressed bytes, once it was read to its end; empty for a folder."""

    def split_by_category(self, *, every: bool = False) -> None:
        """Make each category of a haystack a haystack of its own, after other transformations.

        With `every`, a query is asked in each of its categories, and otherwise in its first.

        Raises:
            UsageError: if the format has no such categories (`bad_option`).
        """
        split, transform = self.format.by_category, self.transform
        if split is None:
            having = ", ".join(each.name for each in formats().values() if each.by_category)
            raise UsageError(
                f"{self.format.name} has no categories that could be indexed apart",
                code="bad_option",
                hint=f"use --index isolated or shared; --index category is for {having}",
            )
        self.transform = lambda haystacks: split(transform(haystacks), every=every)

    def items_of(self, turns: Iterable[str]) -> tuple[str, ...]:
        """The distinct ids of the items that contain these turns."""
        item_of = self.format.item_of
        items = (turn if item_of is None else item_of(turn, self.options) for turn in turns)
        return tuple(dict.fromkeys(items))

    def __iter__(self) -> Iterator[Haystack]:
        """Read the haystacks again.

        Raises:
            UsageError: if the benchmark is invalid (`dataset_invalid`): an empty haystack, a
                duplicate id, text that cannot be encoded, no question at all, or anything that its
                format does not allow.
        """
        validator = _Validator(self.path)
        if self.format.is_folder:
            # By `map`, which does not keep what it yielded: 105,591 turns are 30 MiB.
            yield from map(
                validator.valid, self.transform(self.format.read(self.path, **self.options))
            )
        else:
            with PieceReader(self.path) as source:
                yield from map(
                    validator.valid, self.transform(self.format.read(source, **self.options))
                )
                self.sha256 = source.sha256
        if not validator.queries:
            raise unfit(self.path, "contains no usable question")


class _Validator:
    """Checks haystacks as they are read, and that ids do not occur twice."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._haystacks: set[str] = set()
        self.queries: set[str] = set()

    def valid(self, haystack: Haystack) -> Haystack:
        """The haystack, once it was checked."""
        if not haystack.items:
            raise unfit(self._path, f"{haystack.id}: the haystack is empty")
        if haystack.id in self._haystacks:
            raise unfit(self._path, f"two haystacks have the id {haystack.id}")
        self._haystacks.add(haystack.id)
        items = Counter(item.id for item in haystack.items)
        duplicates = [name for name, count in items.items() if count > 1]
        for query in haystack.queries:
            if query.id in self.queries:
                duplicates.append(query.id)
            self.queries.add(query.id)
        if duplicates:
            raise unfit(self._path, f"{haystack.id}: the id {duplicates[0]} occurs twice")
        for item in haystack.items:
            self._require_encodable(haystack, item.id, item.text)
        for query in haystack.queries:
            if not query.question.strip():
                raise unfit(self._path, f"{haystack.id}: the question {query.id} is blank")
            texts = (query.question, query.category, *query.gold, *query.answers)
            self._require_encodable(haystack, query.id, "".join(texts), query.rubric or "")
        return haystack

    def _require_encodable(self, haystack: Haystack, name: str, *texts: str) -> None:
        """Encoding takes a tenth of the time that searching for unpaired surrogates would."""
        try:
            for text in (name, *texts):
                text.encode()
        except UnicodeEncodeError as error:
            reason = f"{haystack.id}: {name!a} contains an unpaired surrogate"
            raise unfit(self._path, reason) from error


def open_benchmark(path: Path, name: str | None, given: Mapping[str, str | None]) -> Benchmark:
    """The benchmark at `path` in the format `name`, or in the format that it looks like.

    Raises:
        UsageError: if the path does not exist (`dataset_missing`), the format is unknown
            (`unknown_format`) or another one (`wrong_format`), or the format does not have an
            option or value (`bad_option`).
    """
    if not path.exists():
        raise UsageError(
            f"{path} does not exist",
            code="dataset_missing",
            hint="check the path, or give a name that `memconform datasets list` shows",
        )
    known = formats()
    if name is not None and name not in known:
        raise UsageError(f"no format {name!r}", code="unknown_format", hint=nearest(name, known))
    looks = next((each for each in known.values() if each.fits(path)), None)
    selected = known[name] if name is not None else looks
    if selected is None:
        _raise_fault(path)
        raise UsageError(
            f"{path} looks like none of the known formats ({', '.join(known)})",
            code="unknown_format",
            hint="name the format with --format to see what is wrong with the file",
        )
    if looks is not None and not selected.fits(path):
        raise UsageError(
            f"{path} looks like {looks.name}, not {selected.name}",
            code="wrong_format",
            hint=f"name {looks.name}: --format of bench and datasets, --rubric of score",
        )
    return Benchmark(path, selected, _resolved_options(selected, given))


def _raise_fault(path: Path) -> None:
    """Raise UsageError if a file is not valid JSON up to the end of its first element."""
    if path.is_dir():
        return
    with PieceReader(path) as source:
        start = source.read(_HEAD).lstrip()[:1]
    if start in (b"", b"["):
        with PieceReader(path) as source:
            next(elements(source), None)


def _resolved_options(format_: Format, given: Mapping[str, str | None]) -> dict[str, str]:
    options = {name: allowed[0] for name, allowed in format_.options.items()}
    for name, value in given.items():
        if value is None:
            continue
        flag = f"--{name.replace('_', '-')}"
        if name not in options:
            raise UsageError(f"{format_.name} has no {flag}", code="bad_option", hint=format_.about)
        if value not in format_.options[name]:
            raise UsageError(
                f"{format_.name} has no {flag} {value}",
                code="bad_option",
                hint=f"give one of {', '.join(format_.options[name])}",
            )
        options[name] = value
    for name, (other, value) in format_.only_with.items():
        if options[other] != value:
            if given.get(name) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} needs --{other} {value}",
                    code="bad_option",
                    hint=f"omit it with --{other} {options[other]}",
                )
            del options[name]
    return options
