"""Find JSON in the output of vendors' tools, which print warnings before it and remarks after it."""

from __future__ import annotations

from runvitals.base import json_codec
from runvitals.monitoring.collectors.plumbing.plain_text import first_lines, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Limits: opening brackets to try, and whitespace after an opening bracket.
MAX_BRACKETS, MAX_SPACES = 200, 200


def find(output: bytes) -> Any:
    r"""Parse the longest JSON object, or list of objects, in a program's output.

    Its log messages may be JSON objects as well.

    Bytes that are not UTF-8 become replacement characters, so a broken product name costs no values.

    Raises:
        ValueError: the output has no JSON, or it is truncated; the message quotes the first lines.

    Example:
        >>> find(b'WARNING: [driver] is old\n{"card0": {"GPU use (%)": "7"}}\nDone.')
        {'card0': {'GPU use (%)': '7'}}
    """
    text = text_of(output)
    longest_value: Any = None
    longest = end = 0
    for start in _starts(text):
        if start < end:
            continue  # inside of what was parsed
        try:
            value, end = json_codec.loads_at(text, start)
        except ValueError as error:
            if text[start + 1 : start + MAX_SPACES].lstrip()[:1] not in ("{", "[", '"'):
                continue  # a bracket in a message
            if longest:
                break
            # Do not search further: in truncated JSON some inner object is complete, and would be mistaken
            # for the whole.
            raise ValueError(f"invalid JSON in the output: {error}: {first_lines(output)}") from None
        is_data = isinstance(value, dict) or (isinstance(value, list) and _objects(value))
        if is_data and end - start > longest:
            longest_value, longest = value, end - start
    if longest:
        return longest_value
    lines = first_lines(output)
    raise ValueError("the output is empty" if lines == "nothing" else f"no JSON in the output: {lines}")


def _starts(text: str) -> Iterator[int]:
    """Yield the positions of the first opening brackets, in order: where JSON may begin."""
    brace, bracket = text.find("{"), text.find("[")
    for _ in range(MAX_BRACKETS):
        if brace >= 0 and not 0 <= bracket < brace:
            yield brace
            brace = text.find("{", brace + 1)
        elif bracket >= 0:
            yield bracket
            bracket = text.find("[", bracket + 1)


def _objects(value: list[Any]) -> bool:
    return all(isinstance(each, dict) for each in value)
