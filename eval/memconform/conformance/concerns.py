"""What the rules of CONTRACT.md protect, and what a check that fails therefore concerns. Pure."""

import re
from collections.abc import Mapping
from enum import StrEnum

from memconform.conformance.results import Cause, Check


class Concern(StrEnum):
    """Whom a violation hurts; the gravest first."""

    SAFETY = "safety"
    """Documents are lost or leak, a request reaches what it must not, or the daemon stops serving:
    it crashes, hangs, or answers 500."""
    INTERCHANGE = "interchange"
    """A client of the contract breaks or gets something else than it asked for."""
    STRICTNESS = "strictness"
    """The daemon accepts, words or computes something otherwise, and no client need notice."""


_SAFETY = """
core.brain.id core.brain.delete core.brain.recreate core.brain.isolation core.ingest.path
core.ingest.no-read core.ingest.replace core.ingest.durable core.ingest.embedder ask.disconnect
documents.path documents.delete documents.rename documents.batch.atomic documents.durable
events.isolation events.slow events.bounded auth.required auth.secret auth.start robust.body
robust.large robust.depth robust.origin robust.alive robust.slow robust.stop robust.loopback
robust.loopback.no-host state.atomic state.brain.atomic state.full state.files.links
state.index.damage state.second state.gone state.recovery state.recovery.later
state.recovery.unreadable client.end client.failure client.retry.unsafe client.redirect
client.connection
"""

_INTERCHANGE = """
wire.json wire.shape wire.problem wire.unknown-keys core.health core.version core.version.run
core.brain.create core.brain.list core.brain.unknown core.brain.counts core.ingest.metadata
core.ingest.conflict core.ingest.batch core.ingest.read-your-writes core.ingest.hidden
core.chunk.front-matter core.chunk.title core.search.shape core.search.text core.search.order
core.search.prefix core.search.repeatable core.mode.served core.mode.trace core.mode.failure
core.filter.keys core.filter.and core.filter.honest ask.before-stream ask.order ask.citation
ask.answer ask.error ask.upstream ask.upstream.timeout ask.flush ask.framing documents.missing
documents.read documents.stat documents.list documents.list.hidden documents.list.glob
documents.write documents.append documents.conflict documents.batch documents.index
documents.sidecar events.ready events.change events.batch events.ids events.prompt events.ping
events.end auth.health robust.head state.embedder state.files state.description start.serve
client.request client.url client.lines client.fields client.bom client.utf8 client.events
client.prompt client.encoding client.size client.done client.malformed client.status client.numbers
client.silence client.deadline client.cancel client.retry.after client.early
"""

_STRICTNESS = """
wire.method wire.url wire.order wire.equal-keys wire.types wire.detail core.ingest.refuse
core.ingest.limit core.ingest.embedder.batch core.chunk.cut core.chunk.id core.search.refuse
core.search.question-date core.search.ingest-order core.search.history core.search.normal-forms
core.search.unrelated core.mode.candidates core.filter.post core.tuning core.rank.terms
core.rank.bm25 core.rank.semantic core.rank.kernel core.rank.hybrid core.rank.recency
core.rank.temporal core.rank.rerank core.rank.feature-hash core.rank.conversation
core.rank.conversation.session core.rank.conversation.words core.rank.conversation.vectors
core.rank.conversation.turn ask.question-date ask.reader.fake
ask.reader.prompt ask.reader.citation documents.parameters documents.batch.refuse documents.limit
documents.no-store events.nothing state.index state.staging state.journal start.settings
start.timeouts start.empty start.no-keys upstream.chat upstream.embeddings upstream.rerank
upstream.retry client.retry client.head
"""

_TABLE = (
    (Concern.SAFETY, _SAFETY),
    (Concern.INTERCHANGE, _INTERCHANGE),
    (Concern.STRICTNESS, _STRICTNESS),
)

CONCERNS: Mapping[str, Concern] = {
    rule: concern for concern, names in _TABLE for rule in names.split()
}
"""What each rule protects; a test requires that each rule of CONTRACT.md has one place."""

_DISRUPTION = re.compile(
    r"daemon exits|no response|no connection|status 5\d\d, expected (?!5)"
    r"|response is incomplete|connection ends after"
)
_REJECTED_OTHERWISE = re.compile(r"status 4\d\d, expected 4\d\d( or 4\d\d)*$")
_SERVED = re.compile(r"accepts |starts all the same|status 2\d\d, expected 4(?!09)|invalid request")
_REFUSED = re.compile(r"status 4\d\d, (expected 2|never valid)|acknowledged|is not stored")
_HEADER = re.compile(r"(no|wrong|unexpected) header |wrong value at detail")
_STRICT_FIELDS = re.compile(
    r"unexpected key|(documentId|chunkId|tookMs|trace\.\S+|chunkCount|\.score|log)( |$)"
)


def concern_of(check: Check, cause: Cause) -> Concern:
    """Return what a cause of a failed check concerns.

    That of the check's first rule, unless the failure itself says more: a crash is grave whatever
    the case is about, a request that is rejected with another status is not, and one that is
    wrongly accepted matters where its rule protects something.
    """
    rule = CONCERNS.get(check.rules[0], Concern.INTERCHANGE) if check.rules else Concern.INTERCHANGE
    text = cause.cause
    if _DISRUPTION.search(text):
        return Concern.SAFETY
    if _REJECTED_OTHERWISE.search(text) or _HEADER.search(text) or _STRICT_FIELDS.search(text):
        return Concern.STRICTNESS
    if _SERVED.search(text):
        return rule if rule is Concern.SAFETY else Concern.STRICTNESS
    if _REFUSED.search(text) and rule is Concern.STRICTNESS:
        return Concern.INTERCHANGE
    return rule


def depends_on_rule(cause: Cause) -> bool:
    """Whether the rule alone says how grave a failure is: a request was wrongly accepted."""
    return _SERVED.search(cause.cause) is not None
