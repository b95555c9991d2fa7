"""Processor time in multiples of that of simple work, for limits that hold on machines of any speed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ADDITIONS = 1_000_000


class Cost:
    """What a block took: how many times as much processor time as a million additions, about 40 ms."""

    def __init__(self) -> None:
        self.times = 0.0


@contextmanager
def measured(clock: Callable[[], float] = time.thread_time) -> Iterator[Cost]:
    """Measure a block.

    Args:
        clock: `time.process_time` where other threads work, too.

    Example:
        >>> with measured() as cost:
        ...     pass
        >>> cost.times < 1
        True
    """
    cost = Cost()
    before_s = _additions_s()
    began_s = clock()
    yield cost
    block_s = clock() - began_s
    cost.times = block_s / max(before_s, _additions_s())


def _additions_s() -> float:
    began_s, total = time.thread_time(), 0
    for number in range(_ADDITIONS):
        total += number
    return time.thread_time() - began_s
