"""The confidence interval of the median step time."""

from __future__ import annotations

import math
from typing import Sequence

EXACT = 1000
Z = 1.959964  # of the normal distribution, 97.5 % lies below


def median(values: Sequence[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def low_rank(n: int) -> int:
    """Returns the rank, from 1, of the lower end of the median's 95 % interval.

    Whatever the distribution, the number of n independent values below their
    median is binomial with p = 1/2, so the order statistics x(l) and x(n+1-l)
    enclose it with probability

        1 - 2 P(Bin(n, 1/2) <= l - 1)

    and l is the largest rank that makes this at least 0.95, or 0 if there is none,
    as with fewer than 6 values. Source: Conover, Practical Nonparametric
    Statistics, 1999, section 3.2; table for n = 6 and up in Le Boudec,
    Performance Evaluation of Computer and Communication Systems, 2010, appendix A.
    Checking after every step and stopping at the first narrow interval reduces the
    true coverage somewhat.

    Beyond EXACT values, where exact integers get long, the binomial is approximated by
    a normal distribution: the rank is then the same or one lower.
    """
    if n > EXACT:
        return int((n + 1) / 2 - Z * math.sqrt(n) / 2)
    below, term, rank = 0, 1, 0  # 2^n P(Bin < rank), 2^n P(Bin = rank)
    while 40 * (below + term) <= 2**n:
        below += term
        term = term * (n - rank) // (rank + 1)
        rank += 1
    return rank


def half_width(values: Sequence[float]) -> float | None:
    """Returns half the width of that interval as a fraction of the median.

    None while there are too few values.
    """
    low = low_rank(len(values))
    if low == 0:
        return None
    ordered = sorted(values)
    return (ordered[len(ordered) - low] - ordered[low - 1]) / 2 / median(ordered)
