"""Takes out of texts what is nobody's business: secrets wherever they stand, and whose home it was."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from runvitals.environment import redaction
from runvitals.relay.destinations.runvitals import login

# A shorter one would be found in half of all words, and protects nothing.
_SHORTEST_SECRET = 6


class Scrubber:
    """Hides secrets by three ways: those that are known (values of secret variables, kept tokens) wherever
    they occur; what is secret by its name or its looks (`redaction`); and the path of the user's home.

    Args:
        environ: whose secret variables are known secrets.
        more: other known secrets.

    Example:
        >>> scrub = Scrubber({"HOME": "/home/anna", "HF_TOKEN": "hf_secret1"}, [])
        >>> scrub.text("/home/anna/x.py --key hf_secret1")
        '~/x.py --key ***'
    """

    def __init__(self, environ: Mapping[str, str], more: Iterable[str]) -> None:
        known = {value for name, value in environ.items() if redaction.is_secret(name, value)}
        known.update(more)
        self._known = sorted((one for one in known if len(one) >= _SHORTEST_SECRET), key=len, reverse=True)
        home = environ.get("HOME") or os.path.expanduser("~")
        # Not within another name: /home/anna is not the beginning of /home/annabel.
        self._home = re.compile(re.escape(home.rstrip("/")) + r"(?![\w.-])") if len(home) > 1 else None

    def text(self, value: str) -> str:
        """A text without secrets; lines stay lines."""
        whole = redaction.hide(self.known(value))  # a private key has many lines
        value = "\n".join(redaction.text(line) for line in whole.split("\n"))
        return value if self._home is None else self._home.sub("~", value)

    def known(self, value: str) -> str:
        """A text without the secrets that are known; nothing else is changed."""
        for secret in self._known:
            value = value.replace(secret, redaction.HIDDEN)
        return value

    def value(self, value: Any, name: str = "") -> Any:
        """A JSON value without secrets; `name` is that of the field it stands in."""
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(one, str(key)) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            words = all(isinstance(one, str) for one in value)
            return self._words(value) if words else [self.value(one, name) for one in value]
        if isinstance(value, str):
            return redaction.HIDDEN if redaction.is_secret(name, value) else self.text(value)
        return value

    def _words(self, words: Iterable[str]) -> list[str]:
        """A list of texts, which may be a command line: `--token` and what comes next belong together."""
        return [self.text(word) for word in redaction.command([self.known(word) for word in words])]


def kept_tokens(environ: Mapping[str, str]) -> list[str]:
    """The tokens that `runvitals login` keeps."""
    try:
        return login.tokens(environ)
    except ValueError:
        return []  # a file that cannot be read is a finding of the delivery's, and is not in the bundle
