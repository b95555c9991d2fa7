"""Values that are made when they are used first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class MadeOnce(Generic[T]):
    """Makes a value at the first call, in one thread, and returns it at every call.

    Example:
        >>> numbers = MadeOnce(lambda: [1, 2])
        >>> numbers() is numbers()
        True
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []
        self._making = threading.Lock()

    def __call__(self) -> T:
        if not self._made:
            with self._making:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]
