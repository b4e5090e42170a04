"""numpy's default generator in pure Python, so that resamples are the same without numpy.

PCG64 (O'Neill 2014, XSL-RR), seeded like `numpy.random.default_rng(seed)`, and bounded integers
drawn like its `integers` (Lemire 2019). An install without numpy therefore prints the same
intervals as one with it.
"""

from collections.abc import Iterator
from itertools import cycle, islice

_BITS_32, _BITS_64, _BITS_128 = 2**32 - 1, 2**64 - 1, 2**128 - 1
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_POOL = 4


def integers(seed: int, bound: int) -> Iterator[int]:
    """Infinite stream of integers in [0, bound), 1 ≤ bound ≤ 2³², as numpy draws them."""
    if bound == 1:
        yield from cycle([0])
    # Products below the threshold are rejected: they would bias the distribution.
    threshold = (_BITS_32 + 1 - bound) % bound
    for word in _words(seed):
        product = word * bound
        if product & _BITS_32 >= threshold:
            yield product >> 32


def _words(seed: int) -> Iterator[int]:
    """Infinite stream of 32-bit words; the lower half of each 64-bit number comes first."""
    first, second, third, fourth = _seed_words(seed)
    increment = ((third << 64 | fourth) << 1 | 1) & _BITS_128
    state = increment + (first << 64 | second)
    state = (state * _MULTIPLIER + increment) & _BITS_128
    while True:
        state = (state * _MULTIPLIER + increment) & _BITS_128
        folded = (state >> 64 ^ state) & _BITS_64
        turn = state >> 122
        folded = (folded >> turn | folded << 64 - turn) & _BITS_64
        yield folded & _BITS_32
        yield folded >> 32


def _seed_words(seed: int) -> tuple[int, ...]:
    """The four 64-bit words that numpy's SeedSequence derives from a seed."""
    entropy = [seed >> shift & _BITS_32 for shift in range(0, max(1, seed.bit_length()), 32)]
    entropy += [0] * (_POOL - len(entropy))
    factors = _powers(0x43B0D7E5, 0x931E8875)
    pool = [_hash(word, factors) for word in entropy[:_POOL]]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = _mix(pool[target], _hash(pool[source], factors))
    for word in entropy[_POOL:]:
        pool = [_mix(mixed, _hash(word, factors)) for mixed in pool]
    factors = _powers(0x8B51F9DD, 0x58F38DED)
    words = [_hash(word, factors) for word in islice(cycle(pool), 2 * _POOL)]
    return tuple(low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True))


def _powers(first: int, multiplier: int) -> Iterator[tuple[int, int]]:
    """Each factor of the chain, together with its successor."""
    while True:
        successor = first * multiplier & _BITS_32
        yield first, successor
        first = successor


def _hash(word: int, factors: Iterator[tuple[int, int]]) -> int:
    factor, successor = next(factors)
    word = (word ^ factor) * successor & _BITS_32
    return word ^ word >> 16


def _mix(one: int, other: int) -> int:
    mixed = (0xCA01F9DD * one - 0x4973F715 * other) & _BITS_32
    return mixed ^ mixed >> 16
