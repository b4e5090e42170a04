"""The formats of retrieval benchmarks by name, and which one a file looks like."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from memconform.datasets.files import PACKED, PieceReader, unfit
from memconform.datasets.haystacks import Haystack
from memconform.datasets.json_array import elements
from memconform.datasets.jsonl import has_row
from memconform.datasets.locomo import read_locomo
from memconform.datasets.longmemeval import official_gold, read_longmemeval
from memconform.datasets.memini import read_memini
from memconform.datasets.question_set import read_question_set
from memconform.datasets.wmb import QUESTIONS, found, read_wmb
from memconform.errors import UsageError, nearest

ENTRY_POINTS = "memconform.benchmarks"
"""The group in which another package names a `Format` of its own."""

_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class Format:
    name: str
    about: str
    read: Callable[..., Iterator[Haystack]]
    """Of a PieceReader, or of a folder; with one keyword an option that was given."""
    fits: Callable[[Path], bool]
    """Whether a path looks like it; raises nothing but UsageError."""
    options: Mapping[str, tuple[str, ...]]
    """What each of its options may be; the first is the default."""
    is_folder: bool = False
    only_with: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Options that there are only where another one has a value: its name, and the value."""
    official_gold: Callable[[Haystack], tuple[str, ...]] | None = None
    """Of haystacks with one question each: its gold by the official retrieval metrics, none where
    they skip it. None: there are no others than ours."""


_LEVELS = ("turn", "session")


def _first_keys(path: Path) -> frozenset[str]:
    """The keys of a file's first element; none where it is no array of objects."""
    if path.is_dir():
        return frozenset()
    with PieceReader(path) as source:
        try:
            first = next(elements(source), None)
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
    """Whether its first line that is no comment is a row of a question set, or begins as one."""
    if path.is_dir() or path.suffix in PACKED:
        return False
    with PieceReader(path) as source:
        head = source.read(_HEAD).decode("utf-8-sig", "replace")
    line = next(filter(has_row, head.split("\n")), "").lstrip()
    try:
        row = json.loads(line)
    except RecursionError:
        return False
    except ValueError:
        return line.startswith("{") and '"id"' in line and '"question"' in line
    return isinstance(row, dict) and {"id", "question"} <= row.keys()


_OURS = (
    Format(
        "locomo",
        "LoCoMo, locomo10.json: ten conversations; an item is a turn or a session",
        read_locomo,
        lambda path: {"qa", "conversation"} <= _first_keys(path),
        {"level": _LEVELS},
    ),
    Format(
        "longmemeval",
        "LongMemEval, oracle, S or M: a haystack of chat sessions a question",
        read_longmemeval,
        lambda path: {"question_id", "haystack_sessions"} <= _first_keys(path),
        {"level": ("session", "turn"), "session_doc": ("full", "user-only", "dated")},
        only_with={"session_doc": ("level", "session")},
        official_gold=official_gold,
    ),
    Format(
        "wmb",
        "WMB-100K, the folder that holds datasets/ and documents/",
        read_wmb,
        lambda path: bool(found(path, QUESTIONS)),
        {"part": ("B", "A")},
        is_folder=True,
    ),
    # Before memini's: "items" may be a tag of a row.
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
    """Ours, and those that other packages have named, which go before ours of that name."""
    found = {each.name: each for each in _OURS}
    for point in entry_points(group=ENTRY_POINTS):
        loaded = point.load()
        if not isinstance(loaded, Format):
            raise UsageError(
                f"the entry point {point.name!r} of {ENTRY_POINTS} is not a Format",
                code="bad_entry_point",
                hint=f"it is {point.value}",
            )
        found[loaded.name] = loaded
    return found


@dataclass(slots=True)
class Benchmark:
    """A benchmark's file or folder, in a format, with the format's options settled."""

    path: Path
    format: Format
    options: Mapping[str, str]
    transform: Callable[[Iterator[Haystack]], Iterator[Haystack]] = iter
    """What is made of its haystacks before anybody sees them."""
    sha256: str = ""
    """Of a file's bytes, unpacked, once it was read to its end."""

    def __iter__(self) -> Iterator[Haystack]:
        """Its haystacks, read anew.

        Raises:
            UsageError: naming what is wrong with it: an empty haystack, an id that stands twice, a
                text that no daemon can be sent, no question at all, or whatever its format does
                not allow.
        """
        known = _Known(self.path)
        if self.format.is_folder:
            for haystack in self.transform(self.format.read(self.path, **self.options)):
                known.add(haystack)
                yield haystack
        else:
            with PieceReader(self.path) as source:
                for haystack in self.transform(self.format.read(source, **self.options)):
                    known.add(haystack)
                    yield haystack
                self.sha256 = source.sha256
        if not known.queries:
            raise unfit(self.path, "holds no question that can be used")


class _Known:
    """What was read of a benchmark so far, for what must not come again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._haystacks: set[str] = set()
        self.queries: set[str] = set()

    def add(self, haystack: Haystack) -> None:
        if not haystack.items:
            raise unfit(self._path, f"{haystack.id}: the haystack is empty")
        if haystack.id in self._haystacks:
            raise unfit(self._path, f"two haystacks have the id {haystack.id}")
        self._haystacks.add(haystack.id)
        items = Counter(item.id for item in haystack.items)
        twice = [name for name, count in items.items() if count > 1]
        for query in haystack.queries:
            if query.id in self.queries:
                twice.append(query.id)
            self.queries.add(query.id)
        if twice:
            raise unfit(self._path, f"{haystack.id}: the id {twice[0]} occurs twice")
        for item in haystack.items:
            self._encode(haystack, item.id, item.text)
        for query in haystack.queries:
            if not query.question.strip():
                raise unfit(self._path, f"{haystack.id}: the question {query.id} is blank")
            said = (query.question, query.category, *query.gold, *query.answers)
            self._encode(haystack, query.id, "".join(said), query.rubric or "")

    def _encode(self, haystack: Haystack, name: str, *texts: str) -> None:
        """Encoding takes a tenth of the time that looking for half a pair would."""
        try:
            for text in (name, *texts):
                text.encode()
        except UnicodeEncodeError as error:
            why = f"{haystack.id}: {name!a} holds half of a surrogate pair"
            raise unfit(self._path, why) from error


def open_benchmark(path: Path, name: str | None, given: Mapping[str, str | None]) -> Benchmark:
    """The benchmark at `path`, in the format `name`, or in the one that it looks like.

    Raises:
        UsageError: where there is none, it is in another format, or an option is not the format's.
    """
    if not path.exists():
        raise UsageError(f"{path} does not exist", code="dataset_missing", hint="check the path")
    known = formats()
    if name is not None and name not in known:
        raise UsageError(f"no format {name!r}", code="unknown_format", hint=nearest(name, known))
    looks = next((each for each in known.values() if each.fits(path)), None)
    chosen = known[name] if name is not None else looks
    if chosen is None:
        _raise_fault(path)
        raise UsageError(
            f"{path} looks like no format that is known ({', '.join(known)})",
            code="unknown_format",
            hint="name it by --format, and read what is wrong with it",
        )
    if looks is not None and not chosen.fits(path):
        raise UsageError(
            f"{path} looks like {looks.name}, not {chosen.name}",
            code="wrong_format",
            hint=f"--format {looks.name}",
        )
    return Benchmark(path, chosen, _settled(chosen, given))


def _raise_fault(path: Path) -> None:
    """Raise UsageError where a file is not even JSON to the end of its first element."""
    if path.is_dir():
        return
    with PieceReader(path) as source:
        begins = source.read(_HEAD).lstrip()[:1]
    if begins in (b"", b"["):
        with PieceReader(path) as source:
            next(elements(source), None)


def _settled(chosen: Format, given: Mapping[str, str | None]) -> dict[str, str]:
    settled = {name: allowed[0] for name, allowed in chosen.options.items()}
    for name, value in given.items():
        if value is None:
            continue
        flag = f"--{name.replace('_', '-')}"
        if name not in settled:
            raise UsageError(f"{chosen.name} has no {flag}", code="bad_option", hint=chosen.about)
        if value not in chosen.options[name]:
            raise UsageError(
                f"{chosen.name} has no {flag} {value}",
                code="bad_option",
                hint=f"one of {', '.join(chosen.options[name])}",
            )
        settled[name] = value
    for name, (other, value) in chosen.only_with.items():
        if settled[other] != value:
            if given.get(name) is not None:
                raise UsageError(
                    f"--{name.replace('_', '-')} is for --{other} {value}",
                    code="bad_option",
                    hint=f"leave it out with --{other} {settled[other]}",
                )
            del settled[name]
    return settled
