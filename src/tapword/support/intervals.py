"""Exact 95% confidence intervals of counts."""

from collections.abc import Callable

import numpy as np

from tapword.errors import InputError

# Probability of the observed count or more at the lower end, and of it or fewer at the upper end.
TAIL = 0.025


def poisson_interval(count: int, hours: float) -> tuple[float, float]:
    """Exact 95% interval of a rate in events per hour, of which `count` were seen in `hours`.

    Notes
    -----
    Garwood's interval: at its ends, the count or more, or the count or fewer, has probability 2.5%.

    Examples
    --------
    >>> [round(limit, 2) for limit in poisson_interval(0, hours=1 / 3)]
    [0.0, 11.07]
    """
    if count < 0 or not hours > 0:
        raise InputError(f"the count must be 0 or more, and hours above 0; got {count} in {hours}")
    counts = np.arange(count + 1)
    ways = -_log_factorials(count)

    def or_fewer(largest: int, events: float) -> float:
        return _sum((ways + counts * np.log(events) - events)[: largest + 1])

    low, high = _ends(or_fewer, count, 2.0 * count + 20)
    return low / hours, high / hours


def binomial_interval(count: int, of: int) -> tuple[float, float]:
    """Exact 95% interval of a share in percent, of which `count` were seen among `of`.

    Notes
    -----
    Clopper and Pearson's interval: at its ends, the count or more, or the count or fewer, has
    probability 2.5%.

    Examples
    --------
    >>> [round(limit, 1) for limit in binomial_interval(0, of=10)]
    [0.0, 30.8]
    """
    if not 0 <= count <= of or not of:
        raise InputError(f"the count must be from 0 to {of}; got {count}")
    counts = np.arange(of + 1)
    factorials = _log_factorials(of)
    ways = factorials[-1] - factorials - factorials[::-1]

    def or_fewer(largest: int, share: float) -> float:
        logs = ways + counts * np.log(share) + (of - counts) * np.log1p(-share)
        return _sum(logs[: largest + 1])

    low, high = _ends(or_fewer, count, 1.0)
    return 100 * low, 100 * high


def _ends(or_fewer: Callable[[int, float], float], count: int, top: float) -> tuple[float, float]:
    """Parameters from 0 to `top` at which `count` or more, and `count` or fewer, has `TAIL`.

    `or_fewer` gives the probability of a count or fewer, which falls from 1 to 0.
    """

    def where(limit: int, chance: float) -> float:
        low, high = 0.0, top
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if or_fewer(limit, middle) > chance else (low, middle)
        return high

    return where(count - 1, 1 - TAIL) if count else 0.0, where(count, TAIL)


def _log_factorials(largest: int) -> np.ndarray:
    """Logarithms of 0! to `largest`!."""
    return np.append(0.0, np.cumsum(np.log(np.arange(1, largest + 1))))


def _sum(logarithms: np.ndarray) -> float:
    return float(np.exp(logarithms).sum())
