"""`Message`: what is sent to a user, before it is known to whom, as plain text and as HTML."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone, tzinfo
from typing import Final, Literal
from zoneinfo import ZoneInfo

from runvitals.model.durations import DAY_MS

Topic = Literal["", "reminders", "teams"]
SWITCHES: Final = "/-/settings/emails"
"""The page on which users switch off messages with a topic."""

MUTE_PAGE: Final = "/-/mute"
"""The page that mutes what a message is about. The link's secret is in the fragment."""
MUTE_BY_MAIL_PROGRAM: Final = "/api/v1/mute/"
"""What a mail program posts to (RFC 8058)."""

_MUTE: Final = "Mute this run, project or team"
_MAX_VALUE = 500
_NEW_LINE: Final = "\n"
_TIME: Final = re.compile("\ue000(-?[0-9]+)\ue001")
"""A time in a paragraph. `one_line` removes these characters from what users wrote."""

MAX_DIGEST_MAILS: Final = 200
"""The others wait for the next digest."""
_MAX_DIGEST_TEXTS: Final = 30
_MAX_DIGEST_TEXT: Final = 2000
_END: Final = "\n\n-- \n"
"""Separates a text from its end, which a digest has once."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link to this server. `path` begins with a slash; a secret is in its fragment."""

    label: str
    path: str


_SWITCH_OFF = Link("Choose which messages you get", SWITCHES)


@dataclass(frozen=True, slots=True)
class Message:
    """A message, before it is known to whom.

    Attributes:
        kind: its name in the queue and in logs.
        security: sent however many messages this person got within the hour.
        life_ms: it is no longer sent after this time, because its link has expired or it is old news.
        topic: users can switch off its messages; "": they cannot.
        mute: the part of a link that mutes what the message is about; "": nothing does.
    """

    kind: str
    subject: str
    paragraphs: tuple[str, ...]
    link: Link | None = None
    security: bool = False
    life_ms: int = DAY_MS
    topic: Topic = ""
    mute: str = ""

    def to_json(self) -> str:
        """Return this message for `from_json`, without what is as by default."""
        return json.dumps({name: value for name, value in asdict(self).items() if value})

    @classmethod
    def from_json(cls, text: str) -> Message:
        """Return the message that `to_json` was called on."""
        fields = json.loads(text)
        link = fields.pop("link", None)
        paragraphs = tuple(fields.pop("paragraphs"))
        return cls(**fields, paragraphs=paragraphs, link=None if link is None else Link(**link))

    def text(self, url: str, organisation: str, time_zone: str = "UTC") -> str:
        """Return the plain text. `url`: the address of this server, as users know it."""
        parts = [_with_times(paragraph, time_zone) for paragraph in self.paragraphs]
        if self.link is not None:
            parts.append(f"{self.link.label}:\n{_absolute(url, self.link)}")
        parts.append(f"-- \n{_sender(url, organisation)}")
        if self.topic:
            parts[-1] += f"\n{_SWITCH_OFF.label}: {_absolute(url, _SWITCH_OFF)}"
        if self.mute:
            parts[-1] += f"\n{_MUTE}: {_absolute(url, self._mute_link())}"
        return "\n\n".join(parts) + "\n"

    def html(self, url: str, organisation: str, time_zone: str = "UTC") -> str:
        """Return the same as HTML: paragraphs and a link, nothing that is loaded from elsewhere."""
        paragraphs = [_with_times(paragraph, time_zone) for paragraph in self.paragraphs]
        parts = [f"<p>{html.escape(paragraph).replace(_NEW_LINE, '<br>')}</p>" for paragraph in paragraphs]
        if self.link is not None:
            address = html.escape(_absolute(url, self.link))
            parts.append(f'<p><a href="{address}">{html.escape(self.link.label)}</a></p><p>{address}</p>')
        parts.append(f"<hr><p><small>{html.escape(_sender(url, organisation))}</small></p>")
        if self.topic:
            address = html.escape(_absolute(url, _SWITCH_OFF))
            parts.append(f'<p><small><a href="{address}">{_SWITCH_OFF.label}</a></small></p>')
        if self.mute:
            address = html.escape(_absolute(url, self._mute_link()))
            parts.append(f'<p><small><a href="{address}">{_MUTE}</a></small></p>')
        return f'<!doctype html><html><head><meta charset="utf-8"></head><body>{"".join(parts)}</body></html>'

    def _mute_link(self) -> Link:
        return Link(_MUTE, f"{MUTE_PAGE}#{self.mute}")


def one_line(text: str) -> str:
    """Return a user's text on one line, without characters that are invisible or reverse text."""
    visible_text = "".join(
        " " if unicodedata.category(letter).startswith(("C", "Z")) else letter for letter in text
    )
    return " ".join(visible_text.split())[:_MAX_VALUE]


def paragraphs_of(name: str, text: str) -> tuple[str, ...]:
    """Return what a user wrote, as a paragraph; none if it is empty."""
    return (f"{one_line(name)} wrote: “{one_line(text)}”",) if text.strip() else ()


def join_names(names: Sequence[str]) -> str:
    """Names that users chose, on one line."""
    return ", ".join(map(one_line, names))


def time_text(time_ms: int) -> str:
    """Return a time for a paragraph of a message, which is written in the time zone of whoever gets it."""
    return f"\ue000{time_ms}\ue001"


def _with_times(paragraph: str, time_zone: str) -> str:
    return _TIME.sub(lambda match: _write(int(match[1]), time_zone), paragraph)


def _write(time_ms: int, time_zone: str) -> str:
    zone: tzinfo
    try:
        zone, name = ZoneInfo(time_zone), time_zone
    except (KeyError, ValueError, OSError):  # this machine knows fewer time zones than the one that stored it
        zone, name = timezone.utc, "UTC"
    return f"{datetime.fromtimestamp(time_ms / 1000, zone):%Y-%m-%d %H:%M} {name}"


def _absolute(url: str, link: Link) -> str:
    return url.rstrip("/") + link.path


def _sender(url: str, organisation: str) -> str:
    return f"Sent by {one_line(organisation)}, {url}. This message was generated; replies are not read."


def digest(texts: Sequence[Mapping[str, str]]) -> Message:
    """Return one message for several that waited because their address got too many within an hour.

    Args:
        texts: `subject` and `text` of each, the oldest first.

    Example:
        >>> digest([{"subject": "a crashed", "text": "…"}, {"subject": "b ended", "text": "…"}]).subject
        '2 messages: a crashed, b ended'
    """
    subjects = ", ".join(one_line(text["subject"]) for text in texts)
    paragraphs = ["You got many messages within an hour, so these waited for each other."]
    for number, text in enumerate(texts):
        excerpt = text["text"].partition(_END)[0] if number < _MAX_DIGEST_TEXTS else ""
        paragraphs.append(f"{text['subject']}\n\n{excerpt[:_MAX_DIGEST_TEXT]}".rstrip())
    link = Link("Choose which alerts you get", "/-/settings/notifications")
    return Message("digest", one_line(f"{len(texts)} messages: {subjects}"), tuple(paragraphs), link)
