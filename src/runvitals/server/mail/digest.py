"""What one mail says of several that waited because their address got too many within an hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from runvitals.server.mail.message import Link, Message, one_line

MAX_MAILS: Final = 200
"""In one; the others wait for the next."""
_MAX_WITH_TEXT: Final = 30
_MAX_TEXT: Final = 2000
_END: Final = "\n\n-- \n"
"""What begins the end of every text, which the digest has once."""


def digest(texts: Sequence[Mapping[str, str]]) -> Message:
    """One message from the subjects and texts of several, the oldest first.

    Example:
        >>> digest([{"subject": "a crashed", "text": "…"}, {"subject": "b ended", "text": "…"}]).subject
        '2 messages: a crashed, b ended'
    """
    subjects = ", ".join(one_line(text["subject"]) for text in texts)
    paragraphs = ["You got many messages within an hour, so these waited for each other."]
    for number, text in enumerate(texts):
        shown = text["text"].partition(_END)[0] if number < _MAX_WITH_TEXT else ""
        paragraphs.append(f"{text['subject']}\n\n{shown[:_MAX_TEXT]}".rstrip())
    link = Link("Choose which alerts you get", "/-/settings/alerts")
    return Message("digest", one_line(f"{len(texts)} messages: {subjects}"), tuple(paragraphs), link)
