"""JSON in the database. A value that cannot be read is shown as damaged: the rows beside it stay readable."""

from __future__ import annotations

import logging
from typing import Any

from runvitals.base.json_codec import loads, with_valid_text
from runvitals.model import json_values
from runvitals.model.limits import DEPTH

log = logging.getLogger("runvitals.store")


def stored_object(text: str, what: str) -> dict[str, Any]:
    """A stored object. For one that is damaged, an object with the only key `damaged`, which says why.

    Args:
        what: what it belongs to, for the log.

    Example:
        >>> stored_object("[0.1]", "the configuration of run 7")
        {'damaged': 'not a JSON object'}
    """
    value, fault = _parse(text)
    if fault is None and not isinstance(value, dict):
        fault = "not a JSON object"
    if fault is None:
        return value  # type: ignore[no-any-return]
    log.error("%s is damaged in the database: %s", what, fault)
    return {json_values.DAMAGED: fault}


def stored_list(text: str, what: str) -> list[Any]:
    """A stored list; empty if it is damaged."""
    value, fault = _parse(text)
    if fault is None and isinstance(value, list):
        return value
    log.error("%s is damaged in the database: %s", what, fault or "not a JSON list")
    return []


def _parse(text: str) -> tuple[Any, str | None]:
    """The value of a text, and what is wrong with it."""
    try:
        value = loads(text)
        if text.count("{") + text.count("[") > DEPTH:
            json_values.check(with_valid_text(value), DEPTH + 1)
    except ValueError as error:
        return None, str(error)
    except RecursionError:
        return None, "nested too deeply"
    return value, None
