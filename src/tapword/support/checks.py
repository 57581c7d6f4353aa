"""Checks of values that callers give."""

import numbers


def in_range(value: object, low: float, high: float) -> bool:
    """Whether a value is a number from `low` to `high`; NaN is not.

    Examples
    --------
    >>> [in_range(value, 0, 1) for value in (0.5, 1, 10**400, float("nan"), "0.5", None)]
    [True, True, False, False, False, False]
    """
    return isinstance(value, numbers.Real) and low <= value <= high  # type: ignore[operator]
