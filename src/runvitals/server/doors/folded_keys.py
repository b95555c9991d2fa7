"""Keys of metrics of other systems: their own names, with attributes or labels in braces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from runvitals.model.names import sanitized_name

MAX_KEYS: Final = 10_000
"""Of one run, in the life of a server process. More are rejected."""
_ESCAPED: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def folded_key(name: str, attributes: Mapping[str, str]) -> str:
    """A key for a metric with attributes, as Prometheus writes them. One that is too long ends in a checksum.

    Example:
        >>> folded_key("http.requests", {"route": "/users", "code": "200"})
        'http.requests{code="200",route="/users"}'
    """
    if not attributes:
        return sanitized_name(name)
    inner = ",".join(f'{key}="{attributes[key].translate(_ESCAPED)}"' for key in sorted(attributes))
    return sanitized_name(f"{name}{{{inner}}}")
