"""Redacts secrets and the home folder in texts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from runvitals.base import stored_keys
from runvitals.monitoring.environment import redaction

# Shorter values occur in many ordinary words, and are not worth protecting.
_MIN_SECRET_LENGTH = 6


class Scrubber:
    """Redacts secrets and the path of the user's home.

    Secrets are known ones (values of secret variables, stored tokens) wherever they occur, and values that
    are secret by name or form (`redaction`).

    Args:
        environ: the environment, whose secret variables are known secrets.
        more: other known secrets.

    Example:
        >>> scrub = Scrubber({"HOME": "/home/anna", "HF_TOKEN": "hf_secret1"}, [])
        >>> scrub.text("/home/anna/x.py --key hf_secret1")
        '~/x.py --key ***'
    """

    def __init__(self, environ: Mapping[str, str], more: Iterable[str]) -> None:
        others = {secret for secret in more if len(secret) >= _MIN_SECRET_LENGTH}
        self._secrets = sorted({*redaction.known_secrets(environ), *others}, key=len, reverse=True)
        home = environ.get("HOME") or os.path.expanduser("~")
        # Match whole names only: /home/anna is not part of /home/annabel.
        self._home = re.compile(re.escape(home.rstrip("/")) + r"(?![\w.-])") if len(home) > 1 else None

    def text(self, value: str) -> str:
        """Return a text with secrets redacted; line breaks are kept."""
        redacted = redaction.hide(self.hide_known(value))  # a private key has many lines
        value = "\n".join(redaction.text(line) for line in redacted.split("\n"))
        return value if self._home is None else self._home.sub("~", value)

    def hide_known(self, value: str) -> str:
        """Return a text with only the known secrets redacted."""
        return redaction.without_known(value, self._secrets)

    def value(self, value: Any, name: str = "") -> Any:
        """Return a JSON value with secrets redacted; `name` is the name of its field."""
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(entry, str(key)) for key, entry in value.items()}
        if isinstance(value, (list, tuple)):
            words = all(isinstance(entry, str) for entry in value)
            return self._words(value) if words else [self.value(entry, name) for entry in value]
        if isinstance(value, str):
            return redaction.HIDDEN if redaction.is_secret(name, value) else self.text(value)
        return value

    def _words(self, words: Iterable[str]) -> list[str]:
        """Return a list of strings, which may be a command line in which `--token` precedes its value."""
        return [self.text(word) for word in redaction.command([self.hide_known(word) for word in words])]


def kept_tokens(environ: Mapping[str, str]) -> list[str]:
    """Return the tokens stored by `runvitals login`."""
    try:
        return stored_keys.tokens(environ)
    except ValueError:
        return []  # the delivery check reports an unreadable file, and it is not part of the bundle
