"""numpy's default generator in Python, so that a resample is the same where numpy is missing.

PCG64 (O'Neill 2014, XSL-RR), seeded as `numpy.random.default_rng(seed)` seeds it, and bounded
integers as its `integers` draws them (Lemire 2019). The intervals of a run that were published with
numpy are those that an install without it prints.
"""

from collections.abc import Iterator
from itertools import cycle, islice

_BITS_32, _BITS_64, _BITS_128 = 2**32 - 1, 2**64 - 1, 2**128 - 1
_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
_POOL = 4


def integers(seed: int, bound: int) -> Iterator[int]:
    """Endless numbers in [0, bound), for 1 ≤ bound ≤ 2³²: what numpy draws for that seed."""
    if bound == 1:
        yield from cycle([0])
    # What is below it would make some numbers likelier than others.
    unfair = (_BITS_32 + 1 - bound) % bound
    for word in _words(seed):
        product = word * bound
        if product & _BITS_32 >= unfair:
            yield product >> 32


def _words(seed: int) -> Iterator[int]:
    """Endless numbers of 32 bits; of each of 64 the lower half comes first."""
    first, second, third, fourth = _seeded(seed)
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


def _seeded(seed: int) -> tuple[int, ...]:
    """The four numbers of 64 bits that numpy's SeedSequence makes of a seed."""
    entropy = [seed >> shift & _BITS_32 for shift in range(0, max(1, seed.bit_length()), 32)]
    entropy += [0] * (_POOL - len(entropy))
    factors = _powers(0x43B0D7E5, 0x931E8875)
    pool = [_hashed(word, factors) for word in entropy[:_POOL]]
    for source in range(_POOL):
        for target in range(_POOL):
            if source != target:
                pool[target] = _mixed(pool[target], _hashed(pool[source], factors))
    for word in entropy[_POOL:]:
        pool = [_mixed(mixed, _hashed(word, factors)) for mixed in pool]
    factors = _powers(0x8B51F9DD, 0x58F38DED)
    words = [_hashed(word, factors) for word in islice(cycle(pool), 2 * _POOL)]
    return tuple(low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True))


def _powers(first: int, multiplier: int) -> Iterator[tuple[int, int]]:
    """Each factor of a chain, with the one behind it."""
    while True:
        following = first * multiplier & _BITS_32
        yield first, following
        first = following


def _hashed(word: int, factors: Iterator[tuple[int, int]]) -> int:
    factor, following = next(factors)
    word = (word ^ factor) * following & _BITS_32
    return word ^ word >> 16


def _mixed(one: int, other: int) -> int:
    mixed = (0xCA01F9DD * one - 0x4973F715 * other) & _BITS_32
    return mixed ^ mixed >> 16
