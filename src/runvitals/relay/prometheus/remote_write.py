"""The destination `remote_write:URL`: Prometheus, VictoriaMetrics, Mimir, Thanos, and whatever else takes it.

Twice does no harm in Prometheus, which refuses a request whose samples it has; VictoriaMetrics keeps the same
sample twice after an answer that got lost, unless it is told to deduplicate. How far a batch got is kept, so
that what was answered is not sent again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from runvitals.relay.batch import Batch
from runvitals.relay.credentials import headers
from runvitals.relay.destination import Context, Destination, Rejected, Retry
from runvitals.relay.prometheus.snappy import compress
from runvitals.relay.prometheus.write_request import Version1, Version2
from runvitals.relay.timeline import Line, Timeline
from runvitals.relay.web import Answer
from runvitals.relay.weburl import WebAddress

VARIABLES = "REMOTE_WRITE"
PATH = "/api/v1/write"
MOST_SAMPLES = 10_000
_REFUSED = frozenset({400, 409, 413, 415, 422})
_TOO_LARGE, _UNKNOWN_MESSAGE = 413, 415
_WRITTEN = "X-Prometheus-Remote-Write-Samples-Written"


class RemoteWriteDestination(Destination):
    """Sends samples, gaps and ends of series, and what programs log.

    Args:
        address: a URL, by default with the path /api/v1/write; after `#` `version=1` (default) or 2, and
            `headers=FILE`. A server that does not know 2.0 gets 1.0.
        context: its state remembers what is needed to go on.

    Raises:
        ValueError: an address that cannot be.
    """

    name = "remote_write"
    prompt = False

    def __init__(self, address: str, context: Context) -> None:
        found = WebAddress(self.name, address, ("version", "headers"), PATH)
        self._web, self._path = found.web, found.path
        self._headers_file = found.options.get("headers")
        version = found.options.get("version", "1")
        if version not in ("1", "2"):
            raise ValueError(f"remote_write: version={version!r}: 1 or 2")
        self._message: Version1 | Version2 = Version2() if version == "2" else Version1()
        self._environ = context.environ
        self._state = context.state
        self._timeline = Timeline(context.state)

    def deliver(self, batch: Batch) -> None:
        """Send one batch.

        Raises:
            Retry: the far side is busy, or does not accept the credentials.
            Rejected: it does not take some of it, now or ever; the rest was sent.
        """
        key = [batch.writer.name, batch.first_seq]
        arrived = self._state["arrived"] if self._state.get("sending") == key else 0
        self._state["sending"] = key
        problems: list[str] = []
        for number, request in enumerate(requests(self._timeline.lines(batch))):
            if number >= arrived:
                refused = self._send(request)
                problems += [text for text in refused if not (batch.repeated and _is_there(text))]
                self._state["arrived"] = number + 1
        self._state["arrived"] = 0
        self._state["sending"] = None
        self._timeline.keep(batch)
        if problems:
            raise Rejected("; ".join(dict.fromkeys(problems)))

    def close(self) -> None:
        self._web.close()

    def _send(self, lines: Sequence[Line]) -> list[str]:
        """Send some lines; what the far side does not like about them."""
        answer = self._post(self._message, lines)
        if isinstance(self._message, Version2) and not self._knows_2(answer):
            self._message = Version1()
            answer = self._post(self._message, lines)
        if answer.status == _TOO_LARGE and len(lines) > 1:
            middle = len(lines) // 2
            return self._send(lines[:middle]) + self._send(lines[middle:])
        if answer.status in _REFUSED:
            return [f"{answer.status} {answer.text()}".strip()]
        if not 200 <= answer.status < 300:
            raise Retry(self._why(answer), answer.retry_after_s)
        return []

    def _knows_2(self, answer: Answer) -> bool:
        """A server that knows 2.0 says in each answer how much it wrote; one that does not may even answer
        200, having read nothing."""
        ok = 200 <= answer.status < 300
        return answer.status != _UNKNOWN_MESSAGE and not (ok and _WRITTEN not in answer.headers)

    def _post(self, message: Version1 | Version2, lines: Sequence[Line]) -> Answer:
        body = compress(message.message(lines))
        sent = {
            **headers(VARIABLES, self._headers_file, self._environ),
            **message.headers,
            "Content-Encoding": "snappy",
        }
        try:
            answer = self._web.post(self._path, body, sent)
        except OSError:
            message.again()
            raise
        if not 200 <= answer.status < 300:
            message.again()
        return answer

    def _why(self, answer: Answer) -> str:
        where = f"{self._web.url}{self._path}"
        if answer.status in (401, 403):
            return (
                f"{where} does not accept the credentials ({answer.status}); they come from "
                f"{VARIABLES}_TOKEN, _USER and _PASSWORD, _HEADERS, or the file of #headers="
            )
        return f"{where}: {answer.status} {answer.text()}".strip()


def _is_there(refusal: str) -> bool:
    """Of a request that was sent before: it had arrived. Prometheus takes in all of a request or nothing."""
    said = refusal.casefold()
    return "out of order" in said or "duplicate sample" in said


def requests(lines: list[Line]) -> Iterator[list[Line]]:
    """Lines cut by time, so that a request has `MOST_SAMPLES` samples or, of more series, one of each."""
    if sum(len(line.times_ms) for line in lines) <= MOST_SAMPLES:
        if lines:
            yield lines
        return
    times = sorted({time_ms for line in lines for time_ms in line.times_ms})
    step = max(MOST_SAMPLES // len(lines), 1)
    for first in range(0, len(times), step):
        until = times[first + step] if first + step < len(times) else times[-1] + 1
        yield [part for part in (_between(line, times[first], until) for line in lines) if part.times_ms]


def _between(line: Line, first_ms: int, until_ms: int) -> Line:
    start, end = bisect_left(line.times_ms, first_ms), bisect_left(line.times_ms, until_ms)
    return line._replace(times_ms=line.times_ms[start:end], values=line.values[start:end])
