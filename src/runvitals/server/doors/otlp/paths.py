"""The paths of OTLP. It loads nothing else: every request passes here."""

from __future__ import annotations

from typing import Final

METRICS: Final = ("/v1/metrics", "/otlp/v1/metrics")
_FIRST_PARTS: Final = frozenset(("v1", "v1development", "otlp"))


def is_for_otlp(path: str) -> bool:
    """Return whether a path is one of OTLP, or would be if there were one: the page has none of these.

    Example:
        >>> is_for_otlp("/v1/metrics"), is_for_otlp("/otlp"), is_for_otlp("/v12/metrics")
        (True, True, False)
    """
    return path.startswith(("/v1", "/otlp")) and path.split("/", 2)[1] in _FIRST_PARTS
