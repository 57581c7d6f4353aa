"""How the benchmarks time things; nothing here is timed itself."""

import sys

import pytest

from tests.conftest import ROOT


@pytest.fixture
def timing(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield __import__("timing")
    sys.modules.pop("timing", None)


def test_all_take_turns_and_the_first_round_warms_up(timing):
    now, called = [0.0], []

    def taking(name: str, seconds: float):
        def call():
            called.append(name)
            # The first call of each loads something.
            now[0] += seconds + 9 * (called.count(name) == 1)

        return call

    calls = {"one": taking("one", 0.5), "two": taking("two", 0.25)}
    assert timing.turns(calls, 3, lambda: now[0]) == {"one": [500.0] * 3, "two": [250.0] * 3}
    assert called == ["one", "two"] * 4
    assert timing.turns(calls, 1, lambda: now[0], repeats=4) == {"one": [500.0], "two": [250.0]}
    assert called[8:] == (["one"] * 4 + ["two"] * 4) * 2
    assert timing.alternate(calls, 2, lambda: now[0]) == {"one": 500.0, "two": 250.0}


def test_a_slow_round_slows_the_floor_too_and_moves_no_ratio(timing):
    found = timing.compared([10.0, 50.0, 12.0, 20.0, 10.0], [5.0, 25.0, 4.0, 10.0, 4.0])
    assert found == {"time_ms": 12.0, "floor_ms": 5.0, "ratio": 2.0, "low": 2.0, "high": 2.5}
