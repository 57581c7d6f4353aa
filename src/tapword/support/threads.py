"""Limit the threads of numerical libraries.

BLAS threads wait by spinning. On a spotter's small matrices they gain little, and on a busy machine
they make a call many times slower (docs/speed.md).
"""

import contextlib
import threading
from contextlib import AbstractContextManager, ContextDecorator
from typing import Any


class OneBlasThread(ContextDecorator):
    """Limit OpenBLAS to one thread while any call is inside: a context and a decorator.

    Calls may nest and come from several threads; the last one to leave restores the numbers of
    threads. With a threadpoolctl context for each call, overlapping calls would leave the limit on.
    numpy's and scipy's wheels contain OpenBLAS. Other libraries have a limit for each thread of the
    program, and stay as they are.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        # Finding the libraries takes longer than limiting them, so it is done once, and again
        # after scipy has loaded its own.
        self._libraries: list[Any] | None = None
        self._has_scipy = False
        self._before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            while self._before and not self._inside:
                _set_threads(*self._before.pop())

    def scipy_linalg(self) -> Any:
        """Import `scipy.linalg`, if it is installed; its BLAS obeys the limit from then on."""
        import scipy.linalg

        if not self._has_scipy:
            with self._lock:
                self._has_scipy, self._libraries = True, None
                if self._inside:
                    self._limit()
        return scipy.linalg

    def _limit(self) -> None:
        if self._libraries is None:
            from threadpoolctl import ThreadpoolController

            self._libraries = [
                one
                for one in ThreadpoolController().lib_controllers
                if one.internal_api == "openblas" and one.threading_layer == "pthreads"
            ]
        for one in self._libraries:
            self._before.append((one, one.get_num_threads()))
            _set_threads(one, 1)


def _set_threads(library: Any, number: int) -> None:
    library.set_num_threads(number)
    # From threadpoolctl 3.8 on, the first thread to set a number is the only one that may.
    release = getattr(library, "clear_controlling_thread", None)
    if release is not None:
        release()


one_blas_thread = OneBlasThread()


def one_openmp_thread() -> None:
    """Limit OpenMP to one thread in the calling thread, for as long as that thread lives."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="openmp")


def one_thread() -> AbstractContextManager[object]:
    """Limit all numerical libraries to one thread, from now on or in a context.

    scipy has its own BLAS, which must be loaded before it can be limited.
    """
    from threadpoolctl import threadpool_limits

    with contextlib.suppress(ImportError):
        import scipy.linalg  # noqa: F401
    return threadpool_limits(1)
