"""Limit the threads of numerical libraries."""

from contextlib import AbstractContextManager


def one_thread(user_api: str | None = None) -> AbstractContextManager[object]:
    """Limit BLAS, or the libraries of `user_api`, to one thread, from now on or in a context.

    scipy has its own BLAS, which must be loaded before it can be limited.
    """
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api)
