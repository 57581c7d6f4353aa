"""The limit of BLAS threads: where it holds, and that it ends."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import threadpoolctl

from tapword import Spotter
from tapword.learners.base import Learner
from tapword.listening.detector import Detector
from tapword.spotter import encoder
from tapword.support.threads import OneBlasThread, one_blas_thread


def blas_threads() -> set[int]:
    found = threadpoolctl.threadpool_info()
    return {library["num_threads"] for library in found if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """A machine of two cores, whatever this one is."""
    one_blas_thread.scipy_linalg()
    with threadpoolctl.threadpool_limits(2, "blas"):
        yield
        assert blas_threads() == {2}


def watch(monkeypatch, owner, name: str) -> list[set[int]]:
    """Note the threads of BLAS at every call of a function."""
    seen: list[set[int]] = []
    original = getattr(owner, name)

    def call(*arguments, **named):
        seen.append(blas_threads())
        return original(*arguments, **named)

    monkeypatch.setattr(owner, name, call)
    return seen


def test_blas_has_one_thread_while_a_spotter_learns_predicts_and_listens(monkeypatch, rng):
    spotter = Spotter()
    clips = [(0.1 * rng.standard_normal(16_000)).astype(np.float32) for _ in range(3)]
    learned = watch(monkeypatch, Learner, "learn_one")
    pooled = watch(monkeypatch, encoder, "pool_clips")
    directions = watch(monkeypatch, type(spotter.learner), "directions")
    spotter.learn(clips[0], "on")
    spotter.learn(clips[1], "off")
    spotter.reject(clips[2])
    spotter.predict(clips[0])
    Detector(spotter)(np.concatenate(clips))
    for seen in (learned, pooled, directions):
        assert seen and all(threads == {1} for threads in seen)


def test_calls_that_overlap_in_threads_restore_the_number():
    limit, inside, leave = OneBlasThread(), threading.Event(), threading.Event()

    def long_call():
        with limit:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=long_call)
    with limit:
        thread.start()
        inside.wait()
    assert blas_threads() == {1}
    leave.set()
    thread.join()
    assert blas_threads() == {2}


def test_an_error_ends_the_limit():
    with pytest.raises(ZeroDivisionError), one_blas_thread:
        _ = 1 // 0
    assert blas_threads() == {2}


def test_a_blas_loaded_inside_is_limited_and_an_import_limits_nothing():
    code = (
        "import sys, numpy, tapword, threadpoolctl\n"
        "from tapword.support.threads import one_blas_thread\n"
        "def blas():\n"
        "    return [one['num_threads'] for one in threadpoolctl.threadpool_info()]\n"
        "threadpoolctl.threadpool_limits(3)\n"
        "assert 'scipy.linalg' not in sys.modules\n"
        "with one_blas_thread:\n"
        "    one_blas_thread.scipy_linalg()\n"
        "    assert set(blas()) == {1}, blas()\n"
        "assert 3 in blas(), blas()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; from tapword import Spotter; assert 'threadpoolctl' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
