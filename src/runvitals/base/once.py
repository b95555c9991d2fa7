"""Values that are made when somebody first needs them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value", covariant=True)


class Once(Generic[Value]):
    """A value that the first call makes, while others wait for it; if that fails, the next call tries again.

    Example:
        >>> numbers = Once(lambda: [1, 2])
        >>> numbers() is numbers()
        True
    """

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make = make
        self._values: list[Value] = []
        self._making = threading.Lock()

    def __call__(self) -> Value:
        """Return the value."""
        if not self._values:
            with self._making:
                if not self._values:
                    self._values.append(self._make())
        return self._values[0]

    @property
    def is_made(self) -> bool:
        """Whether a call has made it."""
        return bool(self._values)
