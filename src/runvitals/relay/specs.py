"""Destinations as users name them: `http://host:8900`, `files:/data/out`, `mlflow`."""

from __future__ import annotations

import zlib
from importlib import import_module
from typing import cast

from runvitals.journal.paths import safe_name
from runvitals.relay.destination import Factory
from runvitals.relay.destinations import BUILT_IN

ENTRY_POINTS = "runvitals.destinations"


class Spec:
    """One destination, named.

    Attributes:
        text: as the user wrote it.
        name: which kind it is.
        address: what its factory gets.

    Example:
        >>> spec = Spec("files:/data/out?format=csv")
        >>> spec.name, spec.address
        ('files', '/data/out?format=csv')
        >>> Spec("http://host:8900").address
        'http://host:8900'
    """

    __slots__ = ("address", "name", "text")

    def __init__(self, text: str) -> None:
        self.text = text.rstrip("/") if "://" in text else text
        self.name, _, address = self.text.partition(":")
        # An address that begins with the name itself is a whole URL.
        self.address = self.text if self.name in ("http", "https") else address

    @property
    def slug(self) -> str:
        """A file name that is this destination's own, and can be guessed by a person."""
        return f"{safe_name(self.text)[:48]}-{zlib.crc32(self.text.encode()):08x}"

    def factory(self) -> Factory:
        """What makes it.

        Raises:
            ValueError: there is no destination of that name; the text says which there are.
            ImportError: it cannot be loaded.
        """
        target = BUILT_IN.get(self.name)
        if target is not None:
            module, _, name = target.partition(":")
            return cast(Factory, getattr(import_module(module), name))
        from importlib.metadata import entry_points  # 20 ms that built-in destinations need not pay

        for entry in entry_points(group=ENTRY_POINTS):
            if entry.name == self.name:
                return cast(Factory, entry.load())
        known = sorted({*BUILT_IN, *(entry.name for entry in entry_points(group=ENTRY_POINTS))})
        raise ValueError(f"there is no destination {self.name!r}; there are {', '.join(known)}")
