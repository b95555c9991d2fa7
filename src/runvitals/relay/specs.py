"""Destinations as users name them: `http://host:8900`, `files:/data/out`, `mlflow`."""

from __future__ import annotations

import zlib
from hashlib import blake2b
from importlib import import_module
from typing import cast

from runvitals.collectors import redaction
from runvitals.journal.paths import safe_name
from runvitals.relay.destination import Factory
from runvitals.relay.destinations import BUILT_IN

ENTRY_POINTS = "runvitals.destinations"


class DestinationSpec:
    """One destination, named.

    Attributes:
        text: as the user wrote it.
        name: which kind it is.
        address: what its factory gets.

    Example:
        >>> spec = DestinationSpec("files:/data/out?format=csv")
        >>> spec.name, spec.address
        ('files', '/data/out?format=csv')
        >>> DestinationSpec("http://host:8900").address
        'http://host:8900'
    """

    __slots__ = ("_slug", "address", "name", "text")

    def __init__(self, text: str, slug: str = "") -> None:
        """
        Args:
            slug: of a destination of which only the text without its secrets is known.
        """
        self.text = text.rstrip("/") if "://" in text else text
        self.name, _, address = self.text.partition(":")
        # An address that begins with the name itself is a whole URL.
        self.address = self.text if self.name in ("http", "https") else address
        self._slug = slug

    @property
    def is_whole(self) -> bool:
        """Whether it can be delivered to: all of its text is known."""
        return not self._slug

    @property
    def slug(self) -> str:
        """A file name that is this destination's own, and tells no secret: its kind, and a checksum."""
        if self._slug:
            return self._slug
        checksum = blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{safe_name(redaction.text(self.name))[:24]}-{checksum}"

    @property
    def old_slug(self) -> str:
        """The file name that versions up to 0.5 used."""
        return f"{safe_name(self.text)[:48]}-{zlib.crc32(self.text.encode('utf-8', 'surrogatepass')):08x}"

    @property
    def shown(self) -> str:
        """The text without its secrets, to be written down and told."""
        return redaction.text(self.text)

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
