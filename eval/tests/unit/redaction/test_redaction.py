import base64
import importlib
import io
import json
import pkgutil
import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Literal, get_args, get_origin
from urllib.parse import quote

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import memconform
from memconform import redaction
from memconform.bench.records import BenchReport
from memconform.conformance.mutation.results import Fate
from memconform.conformance.results import Result
from memconform.contract.wire import Mode, Profile
from memconform.records import Record
from memconform.results.divergence import Stage
from memconform.scoring.statuses import QuestionStatus
from memconform.stats.paired_comparison import ParityVerdict
from memconform.storage.sink import Sink
from tests.conftest import CHECKOUT


def test_a_secret_is_masked_in_text_and_bytes() -> None:
    redaction.hide("s3cret-value")
    assert redaction.redact("a s3cret-value, twice: s3cret-value") == "a (hidden), twice: (hidden)"
    assert redaction.redact_bytes(b"\xff s3cret-value") == b"\xff (hidden)"


def test_a_secret_is_masked_as_it_stands_in_json() -> None:
    redaction.hide('a"b\u00e9c-long')
    assert redaction.redact('{"k": "a\\"b\u00e9c-long"}') == '{"k": "(hidden)"}'
    assert redaction.redact('{"k": "a\\"b\\u00e9c-long"}') == '{"k": "(hidden)"}'


def test_the_longer_of_two_secrets_goes_first() -> None:
    redaction.hide("a-token-")
    redaction.hide("a-token-and-more")
    assert redaction.redact("a-token-and-more a-token-") == "(hidden) (hidden)"


def test_words_of_the_result_format_are_not_secrets() -> None:
    """`--header 'X-Mode: semantic'` once made a result that no command could read."""
    enums = (QuestionStatus, Mode, Profile, Result, Fate, ParityVerdict, Stage)
    words = [member.value for enum in enums for member in enum]
    for word in [*words, "true", "null"]:
        redaction.hide(word)
        assert redaction.redact_values({"x": word}) == {"x": word}


_WORD = re.compile(r"[A-Za-z][A-Za-z_-]{3,}")
"""What may be masked without its name; a schema's name is no value of a header."""


def _choices(annotation: Any) -> Iterator[str]:
    """The words among which the values of a field are chosen."""
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield from (member.value for member in annotation if isinstance(member.value, str))
    elif get_origin(annotation) is Literal:
        yield from (value for value in get_args(annotation) if isinstance(value, str))
    else:
        for part in get_args(annotation):
            yield from _choices(part)


def _unlisted(models: Iterable[type[Record]]) -> set[str]:
    """The words of models that a secret of the same text would replace."""
    fields = (field for model in models for field in model.model_fields.values())
    words = {word for field in fields for word in _choices(field.annotation)}
    return set(filter(_WORD.fullmatch, words)) - redaction.VOCABULARY


def _records(base: type[Record]) -> Iterator[type[Record]]:
    for model in base.__subclasses__():
        if model.__module__.startswith("memconform."):
            yield model
        yield from _records(model)


def test_every_word_that_a_record_is_read_by_is_in_the_vocabulary() -> None:
    """`--header 'X-Index: category'` made a bench that nothing could read."""
    for package in pkgutil.walk_packages(memconform.__path__, "memconform."):
        if not package.name.endswith("__main__") and "source_patch" not in package.name:
            importlib.import_module(package.name)
    models = list(_records(Record))
    for model in models:
        model.model_rebuild()
    assert len(models) > 150
    assert _unlisted(models) == set()


def test_a_word_that_the_vocabulary_lacks_is_found() -> None:
    class Planted(Record):
        stage: Literal["measured", "planted-word", "may"] | None
        modes: dict[Mode, list[Literal["other-word"]]]

    assert _unlisted([Planted]) == {"planted-word", "other-word"}


def test_a_bench_reads_back_with_a_header_whose_value_is_a_word_of_it() -> None:
    path = CHECKOUT / "results" / "published" / "bench" / "wmb-b-category.json"
    report = BenchReport.model_validate_json(path.read_bytes())
    redaction.hide_header("X-Index", "category")
    written: list[bytes] = []
    Sink(written.append).write_json(report)
    assert BenchReport.model_validate_json(b"".join(written)) == report


def test_a_short_secret_is_masked_as_a_word_and_leaves_dates_and_paths() -> None:
    redaction.hide("2026")
    redaction.hide("stage")
    assert redaction.redact("a stage, key=2026; stages of 2026") == (
        "a (hidden), key=(hidden); stages of (hidden)"
    )
    kept = "2026-11-21T10:00 results/2026/x stage-1 12026 0.2026"
    assert redaction.redact(kept) == kept


@pytest.mark.parametrize(
    "form",
    [
        *(
            "X-Tenant: {}",
            "x-tenant:{}",
            "> x-tenant: {}\r\n",
            "-H 'X-Tenant: {}' -d",
            "X-Tenant  :  {}",
        ),
        *(
            '{{"X-Tenant": "{}"}}',
            '{{\\"x-tenant\\": \\"{}\\"}}',
            "['x-tenant', '{}']",
            "x-tenant={}&y",
        ),
        *(
            "map[Accept:[*/*] X-Tenant:[{}]]",
            "[(b'x-tenant', b'{}')]",
            "Headers([('x-tenant', '{}')])",
            '{{"x-tenant": ["{}"]}}',
            '{{\n"x-tenant": [\n  "{}"\n]}}',
            "'x-tenant' => '{}'",
            "HTTP_X_TENANT={}",
            "x-tenant: Bearer {}",
        ),
    ],
)
@pytest.mark.parametrize("value", ["1", "ab", "smoke", "a.b-c/d"])
def test_a_short_value_of_a_header_is_masked_after_its_name_and_nowhere_else(
    form: str, value: str
) -> None:
    redaction.hide_header("X-Tenant", value)
    assert redaction.redact(form.format(value)) == form.format(redaction.MASK)
    assert redaction.redact_values({"X-Tenant": value, "x": value}) == {
        "X-Tenant": redaction.MASK,
        "x": value,
    }
    for kept in (value, f'"{value}" x: {value}, my-x-tenant: {value}', f"X-Tenant: {value}x"):
        assert redaction.redact(kept) == kept
        assert not redaction.hides(kept)


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "Cookie", "X-Api-Key", "X-Session-Token"),
        *("X-Pass", "X-Pin", "X-Session", "X-Auth", "x_pin", "X-OTP"),
    ],
)
def test_a_short_value_of_a_header_for_credentials_is_masked_as_a_word(name: str) -> None:
    redaction.hide_header(name, "Tok7")
    assert redaction.redact("no such key: Tok7") == "no such key: (hidden)"


def test_a_tiny_secret_is_masked_after_its_variable() -> None:
    redaction.hide("ab", "MY_KEY")
    assert redaction.redact("--env MY_KEY=ab ab=ab") == "--env MY_KEY=(hidden) ab=ab"
    assert redaction.redact_values(["MY_KEY=ab", "ab"]) == ["MY_KEY=(hidden)", "ab"]


@pytest.mark.parametrize("name", ["Authorization", "token", "api_key", "X-Tenant"])
def test_a_tiny_secret_is_masked_in_a_dict_under_its_name(name: str) -> None:
    """A variable in lower case was taken for a field of a result."""
    redaction.hide("abc", name)
    for value in ("abc", " abc ", "Bearer abc"):
        assert redaction.redact_values({name: value, "x": "abc"}) == {name: "(hidden)", "x": "abc"}
        assert redaction.redact_values([[name, value]]) == [[name, "(hidden)"]]
        assert redaction.redact_values({name: [value, "x"]}) == {name: ["(hidden)", "x"]}


def test_a_tiny_bearer_token_is_masked_after_its_scheme() -> None:
    redaction.hide_header("X-Tenant", "Bearer abc")
    assert redaction.redact("X-Tenant: Bearer abc") == "X-Tenant: (hidden)"
    redaction.forget()
    redaction.hide("abc", "Authorization")
    assert redaction.redact("authorization: bearer abc") == "authorization: bearer (hidden)"


@pytest.mark.parametrize("name", ["password", "pwd", "api_key"])
def test_a_tiny_password_is_masked_after_its_name_in_a_connection_string(name: str) -> None:
    redaction.hide_credentials(f"host=db {name}=abc user=x")
    assert redaction.redact(f"no login: {name}=abc abc") == f"no login: {name}=(hidden) abc"


def test_a_name_and_its_value_across_the_end_of_a_chunk_are_masked() -> None:
    redaction.hide("ab", "MY_KEY")
    text = b"MY_KEY ab, MY_KEY" + b" " * 9 + b"=>" + b" " * 9 + b"[\n  b'ab'" + b"." * 200
    whole = redaction.redact_bytes(text)
    assert whole.count(b"(hidden)") == 1
    for size in range(1, len(text) + 2):
        assert b"".join(redaction.redact_stream(io.BytesIO(text), size)) == whole


_PUBLISHED = json.loads((CHECKOUT / "results" / "published" / "runs" / "go.json").read_text())


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


_WORDS = sorted({word for text in _strings(_PUBLISHED) for word in text.split()})


# Twenty words at a time, because the whole result is written for each example.
@settings(max_examples=5)
@given(
    st.sampled_from(["X-Tenant", "X"]),
    st.lists(
        st.sampled_from([word for word in _WORDS if len(word) < 8])
        | st.from_regex(r"[0-9]{1,7}", fullmatch=True),
        min_size=20,
        max_size=20,
    ),
)
def test_a_result_with_a_short_header_reads_back_as_it_was(name: str, words: list[str]) -> None:
    """`--header 'X: 1'` made its contract "(hidden)", and parity refused the result."""
    redaction.forget()
    for word in words:
        redaction.hide_header(name, word)
    command = ["memconform", "run", *(f"{name}: {word}" for word in words)]
    written: list[bytes] = []
    Sink(written.append).write_json({"result": _PUBLISHED, "command": command})
    assert json.loads(b"".join(written)) == {
        "result": _PUBLISHED,
        "command": [*command[:2], *[f"{name}: {redaction.MASK}"] * len(words)],
    }


def test_a_field_of_ours_with_the_name_of_a_header_stays() -> None:
    redaction.hide_header("Mode", "bm25")
    assert redaction.redact_values({"mode": "bm25", "Mode": "bm25"}) == {
        "mode": "bm25",
        "Mode": redaction.MASK,
    }


def _escapes(secret: str) -> dict[str, str]:
    return {
        "json": json.dumps(secret),
        "lower": "".join(f"\\u{ord(c):04x}" for c in secret),
        "upper": "".join(f"\\u{ord(c):04X}" for c in secret),
        "twice": "".join(f"\\\\u{ord(c):04X}" for c in secret),
        "some": secret[:3] + "".join(f"\\u{ord(c):04x}" for c in secret[3:5]) + secret[5:],
        "python": "".join(f"\\x{ord(c):02x}" for c in secret),
        "printf": "".join(f"\\{ord(c):03o}" for c in secret),
        "percent": "".join(f"%{ord(c):02X}" for c in secret),
        "quoted": quote(secret, safe=""),
        "hex": secret.encode().hex(),
        "utf-16-le": secret.encode("utf-16-le").decode("latin-1"),
        "utf-16-be": secret.encode("utf-16-be").decode("latin-1"),
    }


@pytest.mark.parametrize("secret", ["s3cret/value+1", 'a"b\\c d', "Tok7"])
def test_a_secret_is_masked_in_every_escape(secret: str) -> None:
    redaction.hide(secret)
    for name, form in _escapes(secret).items():
        shown = redaction.redact(f"before {form} behind")
        assert redaction.MASK in shown, name
        assert secret[1:] not in shown, name
        assert shown.startswith("before "), name
        assert shown.endswith(" behind"), name


@given(before=st.binary(max_size=5), behind=st.binary(max_size=5), urlsafe=st.booleans())
def test_a_secret_is_masked_in_base64_at_every_alignment(
    before: bytes, behind: bytes, *, urlsafe: bool
) -> None:
    redaction.forget()
    secret = "s3cret>>value??"  # noqa: S105 - made up
    redaction.hide(secret)
    encode = base64.urlsafe_b64encode if urlsafe else base64.b64encode
    encoded = encode(before + secret.encode() + behind)
    for form in (encoded, encoded.rstrip(b"=")):
        clean = redaction.redact_bytes(b'{"x": "' + form + b'"}')
        assert b"(hidden)" in clean
        assert clean.startswith(b'{"x": "')
        assert clean.endswith(b'"}')


@given(st.text(min_size=8, max_size=20), st.text(), st.text())
def test_any_secret_is_masked_anywhere_and_redacting_twice_changes_nothing(
    secret: str, before: str, behind: str
) -> None:
    assume(len(secret.strip()) >= 8 and secret.strip() not in redaction.MASK)
    # A word that results are written in is no secret.
    assume(secret.strip() not in redaction.VOCABULARY)
    redaction.forget()
    redaction.hide(secret)
    clean = redaction.redact(before + secret + behind)
    assert secret not in clean
    masked = redaction.redact_values({"x": before + secret + behind})
    assert masked.keys() == {"x"}
    assert secret not in masked["x"]


@given(st.text())
def test_text_without_a_secret_stays_as_it_is(text: str) -> None:
    redaction.forget()
    redaction.hide("a-secret-that-is-not-there")
    assert redaction.redact(text) == text


def test_keys_of_a_daemons_json_are_masked_and_two_stay_two() -> None:
    redaction.hide("S3cret-value")
    redaction.hide("Other-s3cret")
    value = {"metadata": {"S3cret-value": 1, "x Other-s3cret": 2, "Other-s3cret": 3, "p50": 4}}
    assert redaction.redact_values(value) == {
        "metadata": {"(hidden)": 1, "x (hidden)": 2, "(hidden) 2": 3, "p50": 4}
    }


def test_only_strings_are_masked_and_json_stays_json() -> None:
    """Masking finished JSON once left results that could not be read."""
    redaction.hide("schema_version")
    redaction.hide("12345678")
    value = {"schema_version": ["a 12345678", 12345678, None, {"x": "schema_version"}]}
    assert redaction.redact_values(value) == {
        "schema_version": ["a (hidden)", 12345678, None, {"x": "(hidden)"}]
    }


@pytest.mark.parametrize(
    "name",
    ["GH_PAT", "PGPASSWD", "DB_PWD", "KEY_PASSPHRASE", "NPM_AUTH", "_auth", "DSN", "SENTRY_DSN"],
)
def test_names_of_secrets(name: str) -> None:
    assert redaction.is_secret(name)


@pytest.mark.parametrize("name", ["PATH", "PWD", "OLDPWD", "AUTHOR", "PATTERN", "JB_LLM_MODEL"])
def test_names_that_only_look_like_those_of_secrets(name: str) -> None:
    assert not redaction.is_secret(name)


@pytest.mark.parametrize(
    ("value", "password", "shown"),
    [
        ("root:pass-w0rd@tcp(db)/x", "pass-w0rd", "(hidden)@tcp(db)/x"),
        ("postgres://u:p%40ss-word@db/x", "p@ss-word", "postgres://(hidden)@db/x"),
        ("Server=db;Password=pass-w0rd;Port=1", "pass-w0rd", "Server=db;Password=(hidden);Port=1"),
        ("host=db pwd='pass w0rd' port=1", "pass w0rd", "host=db pwd=(hidden) port=1"),
    ],
)
def test_a_password_within_a_value_is_masked(value: str, password: str, shown: str) -> None:
    """Only addresses were looked into: a DSN of MySQL or ODBC left its password in results."""
    redaction.hide_credentials(value)
    assert redaction.redact(f"cannot log in with {password}") == "cannot log in with (hidden)"
    assert redaction.without_credentials(value) == shown


def test_the_credentials_of_a_header_are_masked_without_their_scheme() -> None:
    redaction.hide_header("Authorization", "Basic " + base64.b64encode(b"me:pass-w0rd").decode())
    assert redaction.redact("log in as me:pass-w0rd, pass-w0rd") == "log in as (hidden), (hidden)"


def test_a_key_of_several_lines_is_masked_line_by_line() -> None:
    redaction.hide("-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n")
    assert redaction.redact("  | MIIEvQIBADANBg") == "  | (hidden)"


def test_a_secret_across_the_end_of_a_chunk_is_masked() -> None:
    redaction.hide("abcabcabd")
    redaction.hide("a-longer-secret-than-a-chunk")
    text = b"xabcabcabcabd a-longer-secret-than-a-chunk, abcabcab" * 3
    for size in range(1, len(text) + 2):
        assert b"".join(redaction.redact_stream(io.BytesIO(text), size)) == redaction.redact_bytes(
            text
        )


def test_a_stream_without_secrets_passes_unchanged() -> None:
    assert b"".join(redaction.redact_stream(io.BytesIO(b"ordinary"), 3)) == b"ordinary"
