"""Texts of notifications about events of runs."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, Final

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.model.ending import signal_name
from runvitals.server.events.run_events import RunEvent

_MAX_SHOWN: Final = 200
_MAX_TEXT: Final = 4000


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """Facts that a text about a run may name; None: unknown.

    Args:
        ended_first: host, and rank, of the process that failed first.
        console: the last lines of the output, without secrets; empty where the receiver may not see them.
        why: why it failed, on one line.
    """

    entity: str | None
    project: str
    name: str
    uid: str
    duration_ms: int
    state: str
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool | None = None
    ended_first: str | None = None
    last_step: float | None = None
    console: tuple[str, ...] = ()
    why: str | None = None

    @property
    def project_path(self) -> str:
        """`entity/project`."""
        project = one_line(self.project)
        return project if self.entity is None else f"{one_line(self.entity)}/{project}"


@dataclass(frozen=True, slots=True)
class AlertText:
    """A title of one line, and what follows it."""

    title: str
    body: str

    @property
    def full_text(self) -> str:
        """Title and body as one text."""
        return f"{self.title}\n\n{self.body}" if self.body else self.title


def event_text(event: RunEvent, facts: AlertFacts, further: int = 0) -> AlertText:
    """Return the text about an event, without why somebody gets it.

    Args:
        further: how many more alerts of the run came within the same minute.
    """
    title = f"[{facts.project_path}] {_title(event, facts)}"
    if event.event in ("custom", "finding"):
        parts = [str(event.data.get("text") or "")[:_MAX_TEXT]]
        if further:
            parts.append(f"The run sent {further} more alerts within this minute. They are on its page.")
    elif event.event in ("failed", "crashed", "lost"):
        parts = [_circumstances(facts), _console(facts)]
    else:
        parts = [_circumstances(facts)]
    return AlertText(title, "\n\n".join(part for part in parts if part))


def duration_text(duration_ms: int) -> str:
    """Return a duration as people say it.

    >>> duration_text(11_520_000), duration_text(42_000)
    ('3 h 12 min', '42 s')
    """
    if duration_ms < MINUTE_MS:
        return f"{max(duration_ms, 0) // 1000} s"
    days, hours = duration_ms // DAY_MS, duration_ms % DAY_MS // HOUR_MS
    minutes = duration_ms % HOUR_MS // MINUTE_MS
    parts = ((days, "d"), (hours, "h"), (minutes if days == 0 else 0, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def one_line(text: str, most: int = _MAX_SHOWN) -> str:
    """Return a user's text on one line, without characters that are invisible or reverse text."""
    visible = "".join(
        " " if unicodedata.category(letter).startswith(("C", "Z")) else letter for letter in text
    )
    return " ".join(visible.split())[:most]


def _title(event: RunEvent, facts: AlertFacts) -> str:
    name, after = one_line(facts.name), f"after {duration_text(facts.duration_ms)}"
    if event.event == "lost":
        return f"{name} was lost: nothing has been heard of it for 10 minutes"
    if event.event == "back":
        return f"{name} is back"
    if event.event in ("custom", "finding"):
        title: Any = event.data.get("title") or event.data.get("text") or "alert"
        return f"{name}: {one_line(str(title))}"
    return f"{name} {event.event} {after}"


def _circumstances(facts: AlertFacts) -> str:
    lines = [f"State: {facts.state}"]
    if facts.why is not None:
        lines.append(f"Why: {one_line(facts.why)}")
    if facts.out_of_memory:
        lines.append("The kernel ended it because memory was exhausted.")
    if facts.exit_code is not None and not (facts.why or "").startswith("Exit code"):
        lines.append(f"Exit code: {facts.exit_code}")
    if facts.signal is not None:
        lines.append(f"Signal: {facts.signal} ({signal_name(facts.signal)})")
    if facts.ended_first is not None:
        lines.append(f"Failed first: {one_line(facts.ended_first)}")
    if facts.last_step is not None:
        lines.append(f"Last step: {facts.last_step:g}")
    return "\n".join(lines)


def _console(facts: AlertFacts) -> str:
    if not facts.console:
        return ""
    return "\n".join(("Last lines of its output:", *facts.console))
