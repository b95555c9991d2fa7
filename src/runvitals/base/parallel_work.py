"""Does the same with many items, several at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def failures_of(work: Callable[[T], object], items: Sequence[T], at_once: int) -> list[Exception]:
    """Do something with each item until one fails, and return what was raised, the first first.

    Where there is one item, or one at a time, it happens in the thread of the caller. If that thread is
    interrupted, no further item is begun.

    Example:
        >>> failures_of(upload, paths, at_once=4)
        []
    """
    failures: list[Exception] = []

    def do(item: T) -> None:
        if not failures:
            try:
                work(item)
            except Exception as error:  # noqa: BLE001 - returned
                failures.append(error)

    threads = min(at_once, len(items))
    if threads <= 1:
        for item in items:
            do(item)
        return failures
    pool = ThreadPoolExecutor(threads, "runvitals-files")
    try:
        list(pool.map(do, items))
    finally:
        pool.shutdown(cancel_futures=True)
    return failures
