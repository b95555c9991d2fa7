"""Writes a file completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yield the path of a draft, which replaces what is at a path, or is gone after an error.

    What is at the path may be a link: it is replaced, and what it leads to stays.

    Example:
        >>> with replacing("weights.pt") as draft, open(draft, "wb") as file:
        ...     file.write(content)
    """
    draft = f"{path}.{os.getpid()}-{os.urandom(4).hex()}.part"
    try:
        yield draft
        os.replace(draft, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise
