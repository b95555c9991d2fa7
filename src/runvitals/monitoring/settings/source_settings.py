"""Validation and redaction for settings of single sources.

`re` and the HTTP client are imported only when such a setting is used, to keep training scripts fast to
start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from runvitals.base.json_codec import loads

_NAME_SIGNS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def endpoints(value: Any) -> dict[str, str]:
    """Exporter endpoints by name: a table, its JSON, or space-separated ``name=URL`` pairs.

    Example:
        >>> endpoints("dcgm=http://localhost:9400/metrics vllm=http://localhost:8000/metrics")
        {'dcgm': 'http://localhost:9400/metrics', 'vllm': 'http://localhost:8000/metrics'}
    """
    from runvitals.monitoring.collectors.plumbing.http import HttpAddress

    table = _table(value)
    for name, url in table.items():
        # No dots: in a key, the name is followed by one.
        if not name or not _NAME_SIGNS.issuperset(name):
            raise ValueError
        HttpAddress(url)
    return table


def url(value: Any) -> str:
    """Return a URL that the HTTP client supports."""
    from runvitals.monitoring.collectors.plumbing.http import HttpAddress

    if not isinstance(value, str):
        raise TypeError
    HttpAddress(value)
    return value


def headers(value: Any) -> dict[str, str]:
    """Request headers: a table, its JSON, or space-separated ``Name=value`` pairs."""
    table = _table(value)
    if any(letter in f"{name}{text}" for name, text in table.items() for letter in "\r\n\0"):
        raise ValueError
    return table


def filters(value: Any) -> list[str] | dict[str, dict[str, str]]:
    """Check the filters of scraped metrics.

    They are regular expressions for ``endpoint.metric``, or a table that maps those to expressions for
    labels. A string is JSON or one expression.

    Example:
        >>> filters('{"dcgm.*TEMP": {"gpu": "^[01]$"}}')
        {'dcgm.*TEMP': {'gpu': '^[01]$'}}
    """
    if isinstance(value, str):
        value = loads(value) if value.lstrip()[:1] in ("[", "{") else [value]
    if isinstance(value, Mapping):
        return {_expression(name): _of_labels(labels) for name, labels in value.items()}
    if not isinstance(value, (list, tuple)):
        raise TypeError
    return [_expression(name) for name in value]


def file(value: Any) -> str:
    """Return the absolute path of a readable file."""
    path = os.path.expanduser(value) if isinstance(value, str) else ""
    if not os.path.isabs(path) or not os.access(path, os.R_OK):
        raise ValueError
    return path


def without_secrets(value: Any) -> Any:
    """URLs, valid or not, with passwords and tokens redacted."""
    from runvitals.monitoring.environment import redaction

    if isinstance(value, Mapping):
        return {name: redaction.text(str(url)) for name, url in value.items()}
    if isinstance(value, (list, tuple)):
        return [redaction.text(str(url)) for url in value]
    return redaction.text(str(value))


def hidden(value: Any) -> Any:
    """Labels, valid or not, with values redacted that look secret or have a secret's name."""
    from runvitals.monitoring.environment import redaction

    return redaction.entries(value) if isinstance(value, dict) else redaction.text(str(value))


def names_only(value: Any) -> Any:
    """Headers with all values redacted: custom headers usually carry credentials."""
    from runvitals.monitoring.environment.redaction import HIDDEN

    return dict.fromkeys(value, HIDDEN) if isinstance(value, Mapping) else HIDDEN


def _of_labels(labels: Any) -> dict[str, str]:
    if not isinstance(labels, Mapping):
        raise TypeError
    return {str(name): _expression(pattern) for name, pattern in labels.items()}


def _expression(value: Any) -> str:
    import re

    if not isinstance(value, str) or not value:
        raise TypeError
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(str(error)) from None
    return value


def _table(value: Any) -> dict[str, str]:
    if isinstance(value, str):
        value = loads(value) if value.lstrip().startswith("{") else _pairs(value)
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for text in value.values()):
        raise TypeError
    return {str(name): text for name, text in value.items()}


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for part in text.split():
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError
        pairs[name] = value
    return pairs
