import pytest
import scipy.stats

from tapword.errors import InputError
from tapword.listening.calibration import poisson_interval


@pytest.mark.parametrize("count", [0, 1, 3, 40])
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
