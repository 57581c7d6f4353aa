import pytest
import scipy.stats

from tapword.errors import InputError
from tapword.support.intervals import binomial_interval, poisson_interval


@pytest.mark.parametrize("count", [0, 1, 3, 40, 5000])
def test_the_interval_of_a_rate_is_exact(count):
    hours = 0.5
    low, high = poisson_interval(count, hours)
    assert scipy.stats.poisson.cdf(count, high * hours) == pytest.approx(0.025)
    if count:
        assert scipy.stats.poisson.sf(count - 1, low * hours) == pytest.approx(0.025)
    else:
        assert low == 0
    with pytest.raises(InputError, match="hours above 0"):
        poisson_interval(count, 0.0)


@pytest.mark.parametrize(("count", "of"), [(0, 7), (1, 7), (4, 7), (7, 7), (3, 400), (5000, 9000)])
def test_the_interval_of_a_share_is_exact(count, of):
    wanted = scipy.stats.binomtest(count, of).proportion_ci(0.95, method="exact")
    found = binomial_interval(count, of)
    assert found == pytest.approx((100 * wanted.low, 100 * wanted.high))


@pytest.mark.parametrize(("count", "of"), [(0, 0), (-1, 3), (4, 3)])
def test_a_share_of_nothing_has_no_interval(count, of):
    with pytest.raises(InputError, match="the count must be"):
        binomial_interval(count, of)
