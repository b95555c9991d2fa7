"""The text of a run in which users search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runvitals.model import fields
from runvitals.model.fields import NUMBER, Scalar
from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.model.names import shorten

MAX_NOTES = 2000
MAX_SEARCHED = 8000
"""Characters of the notes, and of all text of a run, that are searched."""
# Searches for one or two letters match the start of trigrams; so the last letters need a trigram too.
_AFTER_LAST = "\n\n"


def search_text(run_id: str, about: Mapping[str, Any], config: dict[str, Any]) -> str:
    """A run's id, name, group, job type, tags and notes, and the values of its configuration, case folded.

    Args:
        about: the run's `run` section.
    """
    labels = [str(about.get(key) or "") for key in ("name", "default_name", "group", "job_type")]
    notes = str(about.get("notes") or "")[:MAX_NOTES]
    values = [_as_typed(leaf) for leaf in fields.leaves("config", config).values()]
    text = "\n".join(part for part in (run_id, *labels, *tags_of(about), notes, *values) if part)
    return shorten(text, MAX_SEARCHED).casefold() + _AFTER_LAST


def tags_of(about: Mapping[str, Any]) -> list[str]:
    """Return the distinct tags in a `run` section, in their order."""
    tags = about.get("tags")
    if not isinstance(tags, list):
        return []
    return list(dict.fromkeys(shorten(str(tag), LABEL_CHARACTERS) for tag in tags))


def _as_typed(leaf: Scalar) -> str:
    """Return a value as users type it: 64, not 64.0."""
    if leaf.kind != NUMBER:
        return leaf.text
    is_whole = abs(leaf.number) < 2**53 and leaf.number.is_integer()
    return str(int(leaf.number)) if is_whole else repr(leaf.number)
