"""Fit the weights of the ranking of conversations (core.rank.conversation) to LoCoMo's turns.

    PYTHONPATH=sdks/py/src python scripts/fit_conversation.py LOCOMO [--embed-model MODEL]

The features are those of the Python daemon, for each conversation in an index of its own. The rows:
for each conversation the weights that are fitted to the nine others; those fitted to all; and those
of the contract. A fit maximizes the likelihood of the relevant turns under a softmax over all turns
of the conversation. Decays, steps and the limit of lengths are not fitted.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from memconform.datasets.files import PieceReader
from memconform.datasets.haystacks import Haystack
from memconform.datasets.locomo import read_locomo
from memconform.stats.clusters import mean_interval
from memconform.upstream.embedders import Embedder, chosen_embedder
from memoryd.embed.embed import normalize
from memoryd.index.postings import Postings
from memoryd.index.sessions import SessionChunk, Sessions, Turn
from memoryd.text.stop_words import keywords
from memoryd.text.terms import query_terms

Array = npt.NDArray[np.float64]

_WEIGHTS = {"vectors": 1.4, "speaker": 2.0, "length": 2.0, "reply": 1.0}
"""The contract's; that of words is 1."""
_RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and what is known of each turn of its conversation."""

    conversation: str
    features: Array
    """A row for each turn: words, vectors, speaker, length, reply."""
    gold: list[int]


def read(file: Path, embedder: Embedder | None) -> list[Query]:
    """The questions of all conversations."""
    with PieceReader(file) as source:
        return [query for each in read_locomo(source, "turn") for query in _queries(each, embedder)]


def _queries(haystack: Haystack, embedder: Embedder | None) -> Iterator[Query]:
    texts = [item.text for item in haystack.items]
    postings, taken = Postings(), np.ones(len(texts), np.bool_)
    for text in texts:
        postings.add(text)
    sessions = Sessions(
        SessionChunk.of(Turn(item.group, slot, item.speaker), f"{slot:06}.md", slot, item.text)
        for slot, item in enumerate(haystack.items)
    )
    turns, slots = sessions.turns, {item.id: slot for slot, item in enumerate(haystack.items)}
    questions = [query.question for query in haystack.queries]
    rows, asked = (_embedded(each, embedder) for each in (texts, questions))
    for number, query in enumerate(haystack.queries):
        terms = query_terms(query.question)
        times = Counter(keywords(terms))
        found = postings.term_scores(times, taken, texts.__getitem__)
        words = turns.words((sessions.places(at), times[term] * s) for term, at, s in found)
        cosines = (rows @ asked[number])[sessions.slots]
        columns = (
            words,
            turns.vectors(cosines),
            sessions.named(terms),
            turns.lengths,
            turns.replies,
        )
        features = np.empty((len(texts), len(columns)))
        features[sessions.slots] = np.column_stack(columns)
        yield Query(haystack.id, features, [slots[gold] for gold in query.gold if gold in slots])


def _embedded(texts: Sequence[str], embedder: Embedder | None) -> Array:
    """Vectors of length 1; without an embedder all are equal, so that they say nothing."""
    if embedder is None:
        return np.ones((len(texts), 1))
    return np.array([normalize(vector) for vector in embedder.embed(texts)], np.float64)


def fitted(queries: Sequence[Query]) -> Array:
    """The weights that make the relevant turns likeliest, as multiples of that of words."""
    queries = [query for query in queries if query.gold]
    sizes = [len(query.features) for query in queries]
    starts = np.cumsum([0, *sizes[:-1]])
    relevant = np.zeros(sum(sizes))
    for start, query in zip(starts.tolist(), queries, strict=True):
        relevant[[start + gold for gold in query.gold]] = 1
    table = np.concatenate([query.features for query in queries])
    scale = table.std(axis=0)
    scale[scale == 0] = 1
    table /= scale

    def loss(weights: Array) -> tuple[float, Array]:
        values = table @ weights
        powers = np.exp(values - np.repeat(np.maximum.reduceat(values, starts), sizes))
        shares = powers / np.repeat(np.add.reduceat(powers, starts), sizes)
        hits = np.add.reduceat(relevant * shares, starts) + 1e-300
        slope = table.T @ (shares - relevant * shares / np.repeat(hits, sizes)) / len(sizes)
        penalty = _RIDGE * float(weights @ weights)
        return -float(np.log(hits).mean()) + penalty, slope + 2 * _RIDGE * weights

    found = minimize(loss, np.full(len(scale), 0.3), jac=True, method="L-BFGS-B").x / scale
    weights: Array = found / found[0]
    return weights


def rank(query: Query, weights: Array, *, by_vectors: bool) -> float:
    """The rank of the best relevant turn; infinity if none is found."""
    scores = np.floor(query.features @ weights * 1e9 + 0.5)
    if not by_vectors:
        scores[query.features[:, 0] == 0] = -np.inf
    ranks = [
        1 + np.sum(scores > scores[gold]) + np.sum(scores[:gold] == scores[gold])
        for gold in query.gold
        if np.isfinite(scores[gold])
    ]
    return float(min(ranks, default=np.inf))


def _row(name: str, queries: Sequence[Query], ranks: Sequence[float]) -> str:
    conversations = [query.conversation for query in queries]
    cells = []
    for gains in (
        [float(rank <= 5) for rank in ranks],
        [float(rank <= 10) for rank in ranks],
        [1 / rank if rank <= 10 else 0.0 for rank in ranks],
    ):
        low, high = mean_interval(gains, conversations)
        cells.append(f"{100 * float(np.mean(gains)):.1f} ({100 * low:.1f} to {100 * high:.1f})")
    return " | ".join(["", name, *cells, ""]).strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("locomo", type=Path)
    parser.add_argument("--embed-model", help="by default words alone are fitted")
    options = parser.parse_args()
    model = options.embed_model
    queries = read(options.locomo, chosen_embedder(model) if model else None)
    held: dict[str, Array] = {}
    for conversation in dict.fromkeys(query.conversation for query in queries):
        held[conversation] = fitted([q for q in queries if q.conversation != conversation])
        weights = dict(zip(_WEIGHTS, held[conversation][1:].round(2).tolist(), strict=True))
        print(f"without {conversation}: {weights}", file=sys.stderr)
    everywhere, contract = fitted(queries), np.array([1, *_WEIGHTS.values()])
    print("| weights | recall_any@5 | recall_any@10 | mrr@10 |\n| --- | ---: | ---: | ---: |")
    for name, weights_of in (
        ("fitted to the others", held.__getitem__),
        ("fitted to all", lambda _: everywhere),
        ("the contract's", lambda _: contract),
    ):
        ranks = [rank(q, weights_of(q.conversation), by_vectors=bool(model)) for q in queries]
        print(_row(name, queries, ranks))
    return 0


if __name__ == "__main__":
    sys.exit(main())
