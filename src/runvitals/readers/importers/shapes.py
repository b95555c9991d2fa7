"""The shapes of what other systems wrote: what has another one than was expected is taken for empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping(value: object) -> Mapping[Any, Any]:
    """Return a mapping; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def listed(value: object) -> list[Any]:
    """Return a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def mappings(value: object) -> list[Mapping[Any, Any]]:
    """Return the mappings in a list; none for anything else."""
    return [item for item in listed(value) if isinstance(item, dict)]
