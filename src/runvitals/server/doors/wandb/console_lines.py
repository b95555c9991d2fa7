"""Lines of the console, as records of ours."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import Any, Final

from runvitals.model.limits import AHEAD_MS, OLDEST_SENT_MS, TEXT_CHARACTERS

_LINE: Final = re.compile(r"(ERROR )?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z? ?")
_STDOUT, _STDERR = 1, 2


def console_record(line: str, now_ms: int) -> dict[str, Any]:
    r"""Return a line of the console as the value of a record.

    Example:
        >>> console_record("ERROR 2026-08-21T10:00:00.250000 loss is NaN", 0)
        {'t': 1787306400250, 'stream': 2, 'text': 'loss is NaN\n'}
    """
    match = _LINE.match(line)
    time_ms, stream, text = now_ms, _STDOUT, line
    if match is not None:
        error, seconds, fraction = match.groups()
        text = line[match.end() :]
        stream = _STDERR if error else _STDOUT
        time_ms = _time_ms(seconds, fraction, now_ms)
    text = text.rstrip("\r\n")
    if len(text) >= TEXT_CHARACTERS:
        text = text[: TEXT_CHARACTERS - 2] + "…"
    # A progress bar rewrites its line; its last state is shown.
    return {"t": time_ms, "stream": stream, "text": text.rpartition("\r")[2] + "\n"}


def _time_ms(seconds: str, fraction: str | None, now_ms: int) -> int:
    try:
        moment = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return now_ms
    time_ms = int(moment.timestamp()) * 1000 + int((fraction or "0").ljust(3, "0")[:3])
    return time_ms if now_ms == 0 or OLDEST_SENT_MS <= time_ms <= now_ms + AHEAD_MS else now_ms
