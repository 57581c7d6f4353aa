"""The fuzzer: every input of its corpus still has a good outcome, and it notices bad ones."""

import json

import pytest

from tests import fuzz

EXTRAS = {"wyoming": ("wyoming",), "http": ("starlette", "uvicorn", "websockets")}


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_every_kept_input_has_an_outcome_of_tapwords_own(name):
    for package in EXTRAS.get(name, ()):
        pytest.importorskip(package)
    with fuzz.fuzzer(name) as fuzzed:
        assert fuzzed.replay() == len(list(fuzzed.corpus.iterdir())) > 0
        # They differ, and they are not all refused for being no input at all.
        assert len(fuzzed.outcomes) > 5


def test_the_corpus_is_small():
    files = [path for path in fuzz.CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 400_000
    assert {path.parent.name for path in files} == set(fuzz.TARGETS)


class Picky(fuzz.Target):
    """Fails at a byte that no valid input has."""

    def seeds(self):
        yield b"[1, 2, 3]"

    def __call__(self, data: bytes) -> str:
        if b"\xff" in data:
            raise ZeroDivisionError("0xff")
        return f"{len(data)} bytes"


def test_a_finding_ends_the_run_and_stays_in_the_corpus(tmp_path, monkeypatch):
    monkeypatch.setitem(fuzz.TARGETS, "picky", Picky)
    with fuzz.fuzzer("picky", tmp_path) as fuzzed:
        with pytest.raises(ZeroDivisionError):
            fuzzed.run(60, seed=1)
        [found] = (tmp_path / "picky").iterdir()
        assert found.name.startswith("found-") and b"\xff" in found.read_bytes()
        # The next run begins with it.
        with pytest.raises(ZeroDivisionError):
            fuzzed.replay()


def test_inputs_with_new_outcomes_are_kept_and_damaged_further(tmp_path, monkeypatch):
    monkeypatch.setitem(fuzz.TARGETS, "picky", Picky)
    monkeypatch.setattr(fuzz, "damage", lambda data, rng: data + b"]")
    with fuzz.fuzzer("picky", tmp_path) as fuzzed:
        assert fuzzed.run(0.2, seed=1) > 0
        assert len(fuzzed.outcomes) > 2
        fuzzed.keep()
    kept = [path.read_bytes() for path in (tmp_path / "picky").iterdir()]
    assert json.dumps([1, 2, 3]).encode() in kept
    assert 1 < len(kept) <= fuzz.KEPT
