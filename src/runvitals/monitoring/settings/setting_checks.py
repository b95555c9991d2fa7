"""Checks of settings: each converts a value from Python, TOML or an environment variable to its proper type.

They raise ValueError or TypeError if it is invalid.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from runvitals.base.json_codec import loads
from runvitals.base.numbers import parse_integer, parse_number
from runvitals.journal import paths
from runvitals.model import limits
from runvitals.model.names import can_be_addressed, has_control_characters
from runvitals.monitoring.settings import source_settings

_HIGHEST_INDEX = 2**31


def number(low: float, high: float) -> Callable[[Any], float]:
    """Return a check of numbers from `low` to `high`."""

    def check(value: Any) -> float:
        if isinstance(value, bool):
            raise TypeError
        parsed = parse_number(value, low, high) if isinstance(value, str) else float(value)
        if parsed is None or not low <= parsed <= high:
            raise ValueError
        return parsed

    return check


def boolean(value: Any) -> bool:
    """Check a boolean, or a word such as `yes` or `off`."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError


def text(value: Any) -> str:
    """Check a text, which may be empty."""
    if not isinstance(value, str):
        raise TypeError
    return value


def name(value: Any) -> str:
    """Check a name of 1 to 128 characters without slashes and control characters."""
    stripped = text(value).strip()
    if not stripped or len(stripped) > 128 or any(c in "/\\" for c in stripped):
        raise ValueError
    if has_control_characters(stripped):
        raise ValueError
    return stripped


def project(value: Any) -> str:
    """Check the name of a project, which must work in addresses."""
    checked = name(value)
    if not can_be_addressed(checked):
        raise ValueError
    return checked


def run_id(value: Any) -> str:
    """Check the id of a run."""
    return paths.check_run_id(text(value))


def one_of(*words: str) -> Callable[[Any], str]:
    """Return a check of one of these words."""

    def check(value: Any) -> str:
        if value not in words:
            raise ValueError
        return str(value)

    return check


def list_of(item: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """Return a check of a list; as a string, JSON or items separated by commas."""

    def check(value: Any) -> list[Any]:
        if isinstance(value, str):
            value = (
                loads(value)
                if value.lstrip().startswith("[")
                else [part.strip() for part in value.split(",")]
            )
        if not isinstance(value, (list, tuple)):
            raise TypeError
        return [item(part) for part in value if part != ""]

    return check


def index(value: Any) -> int:
    """Check an index of at least 0."""
    if isinstance(value, str):
        parsed = parse_integer(value.strip(), _HIGHEST_INDEX)
        if parsed is None:
            raise ValueError
        return parsed
    if isinstance(value, (bool, float)) or not 0 <= int(value) <= _HIGHEST_INDEX:
        raise ValueError
    return int(value)


def path(value: Any) -> str:
    """Check a path, which may be relative."""
    path_text = os.fspath(value)
    if not isinstance(path_text, str):
        raise TypeError
    if b"\0" in os.fsencode(path_text):
        raise ValueError
    return path_text


def absolute_path(value: Any) -> str:
    """Check an absolute path; `~` is the user's home."""
    expanded = os.path.expanduser(path(text(value)))
    if not os.path.isabs(expanded):
        raise ValueError
    return expanded


def server(value: Any) -> str:
    """Check a server URL. Passwords are rejected, because the URL is written into the run's folder."""
    url = text(value).strip().rstrip("/")
    scheme, separator, rest = url.partition("://")
    host = rest.partition("/")[0]
    if scheme not in ("http", "https") or not separator or not host or "@" in host:
        raise ValueError
    if any(c <= " " for c in url):
        raise ValueError
    return url


def destination(value: Any) -> str:
    """Check a destination: a URL without a password, `NAME` or `NAME:ADDRESS`."""
    spec = text(value).strip()
    if spec.startswith(("http:", "https:")):
        return server(spec)
    kind = spec.partition(":")[0]
    if not kind or not kind.isascii() or not kind.replace("_", "").replace("-", "").isalnum():
        raise ValueError
    if "@" in spec.partition("://")[2].partition("/")[0]:
        raise ValueError
    return spec


def labels(value: Any) -> dict[str, str]:
    """Check labels, also as JSON or `name=value` separated by commas, and redact secrets in them."""
    if isinstance(value, str):
        value = loads(value) if value.lstrip().startswith("{") else _pairs(value)
    if not isinstance(value, Mapping):
        raise TypeError
    # Redact secrets now: labels are written to every journal and shown to every reader. Keep one character
    # more than a record can hold, so that a label that is too long is reported where it is recorded.
    texts = {name(key): str(item)[: limits.TEXT_CHARACTERS + 1] for key, item in value.items()}
    redacted: dict[str, str] = source_settings.hidden(texts)
    return redacted


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise ValueError
        pairs[key.strip()] = value.strip()
    return pairs


def optional(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a check that also allows None."""
    return lambda value: None if value is None else check(value)
