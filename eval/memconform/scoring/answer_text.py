"""Scores of an answer by its words: LoCoMo's official token F1, and BLEU-1.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024),
released as `task_eval/evaluation.py` on the branch `code` of its repository. Needs the extra `qa`.
"""

import string
from collections import Counter
from functools import lru_cache

import numpy as np
import regex
from nltk.stem.porter import PorterStemmer
from nltk.tokenize.destructive import NLTKWordTokenizer
from nltk.translate.bleu_score import sentence_bleu

from memconform.datasets.locomo import CATEGORIES
from memconform.datasets.question import Question
from memconform.scoring.abstention import contains_phrase

_MULTI_HOP, _OPEN_DOMAIN, _ADVERSARIAL = CATEGORIES[1], CATEGORIES[3], CATEGORIES[5]

# `regex` and not `re`: the two differ in what ends a word, such as a combining accent.
_SKIPPED = regex.compile(r"\b(a|an|the|and)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
# Not the original algorithm: nltk's default adds irregular forms and other rules for short words.
_STEMMER = PorterStemmer()
_TOKENIZER = NLTKWordTokenizer()


def locomo_f1(question: Question, answer: str) -> float:
    """The official score of an answer to a LoCoMo question, in [0, 1].

    Multi-hop answers are compared part by part (`multi_answer_f1`), the reference answers of
    open-domain questions end at their first semicolon, and an adversarial question is answered
    right if the answer says "no information available" or "not mentioned".
    """
    if question.category == _ADVERSARIAL:
        return float(contains_phrase(answer))
    reference = reference_text(question)
    if question.category == _MULTI_HOP:
        return multi_answer_f1(answer, reference)
    return token_f1(answer, reference)


def reference_text(question: Question) -> str:
    """The reference answer as LoCoMo's code compares with it; empty without one."""
    reference = question.reference_answer or ""
    if question.category == _OPEN_DOMAIN:
        reference = reference.split(";")[0].strip()
    return reference


def token_f1(answer: str, reference: str) -> float:
    """The harmonic mean of precision and recall of stems, each counted as often as it occurs."""
    given, wanted = _stems(answer), _stems(reference)
    common = sum((Counter(given) & Counter(wanted)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(given), common / len(wanted)
    return (2 * precision * recall) / (precision + recall)


def multi_answer_f1(answer: str, reference: str) -> float:
    """The mean, over the comma-separated parts of the reference, of the best F1 of the answer's."""
    parts = [part.strip() for part in answer.split(",")]
    best = [
        max(token_f1(part, wanted.strip()) for part in parts) for wanted in reference.split(",")
    ]
    # numpy adds pairwise, which may differ from a sum in the last digit.
    return float(np.mean(best))


def bleu1(answer: str, reference: str) -> float:
    """Unigram BLEU with its brevity penalty (Papineni et al. 2002), in [0, 1].

    Tokens are those of nltk's word tokenizer in lower case, as in published BLEU-1 of LoCoMo; the
    text is not split into sentences first, which would need a trained model.
    """
    given, wanted = _tokens(answer), _tokens(reference)
    return float(sentence_bleu([wanted], given, weights=(1.0,))) if given and wanted else 0.0


def _stems(text: str) -> list[str]:
    """Stems of a text in lower case without punctuation and the words a, an, the, and."""
    plain = text.replace(",", "").lower().translate(_PUNCTUATION)
    return [_stem(word) for word in _SKIPPED.sub(" ", plain).split()]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    stem: str = _STEMMER.stem(word)
    return stem


def _tokens(text: str) -> list[str]:
    tokens: list[str] = _TOKENIZER.tokenize(text.lower())
    return tokens
