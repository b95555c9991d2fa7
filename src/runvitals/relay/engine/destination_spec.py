"""Destinations as users write them: `http://host:8900`, `files:/data/out`, `mlflow`."""

from __future__ import annotations

import shlex
import sys
from hashlib import blake2b
from importlib import import_module
from typing import cast

from runvitals.journal.paths import safe_name
from runvitals.model import destination_kinds
from runvitals.monitoring.environment import redaction
from runvitals.relay.destination import Context, Destination, Factory
from runvitals.relay.destinations import BUILT_IN, EXTRAS

_MIN_SECRET_LENGTH = 3


class DestinationSpec:
    """A destination as a user wrote it.

    Attributes:
        text: as the user wrote it.
        name: the kind of destination.
        address: the text passed to its factory.

    Example:
        >>> spec = DestinationSpec("files:/data/out?format=csv")
        >>> spec.name, spec.address
        ('files', '/data/out?format=csv')
        >>> DestinationSpec("http://host:8900").address
        'http://host:8900'
    """

    __slots__ = ("_slug", "address", "name", "text")

    def __init__(self, text: str, slug: str = "") -> None:
        """Parse a destination such as `mlflow:http://host`.

        Args:
            slug: for a destination whose text is only known without its secrets.
        """
        self.text = text.rstrip("/") if "://" in text else text
        self.name, _, address = self.text.partition(":")
        # `http://…` is both name and address.
        self.address = self.text if self.name in ("http", "https") else address
        self._slug = slug

    @property
    def is_whole(self) -> bool:
        """Whether the text has its secrets, so that the destination can be reached."""
        return not self._slug

    @property
    def takes_edits(self) -> bool:
        """Whether what users change afterwards is delivered: to a runvitals server."""
        return self.name in ("http", "https")

    @property
    def slug(self) -> str:
        """A file name unique to this destination that reveals no secret: its kind and a checksum."""
        if self._slug:
            return self._slug
        checksum = blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f"{safe_name(redaction.text(self.name))[:24]}-{checksum}"

    @property
    def shown(self) -> str:
        """The text without its secrets, for files and messages."""
        return redaction.text(self.text)

    def redacted(self, text: str) -> str:
        """Return a text about this destination, such as an error, without its secrets and others."""
        if not text:
            return text
        text = text.replace(self.text, self.shown)
        return redaction.text(redaction.without_known(text, self._secrets()))

    def _secrets(self) -> list[str]:
        """Return the parts of the text that are not shown, but for very short ones."""
        secrets, at = [], 0
        for part in self.shown.split(redaction.HIDDEN):
            begin = self.text.find(part, at) if part else len(self.text)
            secrets.append(self.text[at : max(begin, at)])
            at = max(begin, at) + len(part)
        return [secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH]

    def create(self, context: Context) -> Destination:
        """Return the destination.

        Raises:
            ValueError: unknown destination, or invalid address.
            ModuleNotFoundError: it requires a package that this interpreter lacks; the text says how to
                install it.
            ImportError: it could not be imported.
        """
        try:
            return self.factory()(self.address, context)
        except ModuleNotFoundError as error:
            package = error.name or "a package"
            raise ModuleNotFoundError(
                f"{self.name} requires {package}, which {sys.executable} lacks: {self.installation(package)}",
                name=error.name,
            ) from error
        except ValueError as error:
            if self.redacted(str(error)) == str(error):
                raise
            raise ValueError(self.redacted(str(error))) from None

    def installation(self, package: str) -> str:
        """Return the command that installs a package for this destination into this interpreter."""
        extra = EXTRAS.get(self.name)
        what = f"'runvitals[{extra}]'" if extra else package
        return f"{shlex.quote(sys.executable)} -m pip install {what}"

    def factory(self) -> Factory:
        """Return the factory of this destination.

        Raises:
            ValueError: unknown destination; the text lists the known ones.
            ImportError: it could not be imported.
        """
        target = BUILT_IN.get(self.name)
        if target is not None:
            module, _, name = target.partition(":")
            return cast(Factory, getattr(import_module(module), name))
        return cast(Factory, destination_kinds.find_added(self.name).load())
