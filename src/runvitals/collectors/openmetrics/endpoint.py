"""One endpoint of an exporter: asked in a thread of its own, left alone for a while when it fails.

What its answers hold is told in numbered series, for a key has no room for labels.
"""

from __future__ import annotations

import time
from _random import Random  # the C half of `random`, whose Python half would cost 1 MB

from runvitals.backoff import Backoff
from runvitals.collectors.plumbing import exposition, http
from runvitals.collectors.plumbing.background import BackgroundReader, Hung

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence

    from runvitals.collectors.base import Tick

EVERY_S = 1.0
# An exporter on this machine answers within a few ms, and its numbers are of this very tick. Others' come
# with the next one.
PATIENCE_S = 0.02
TIMEOUT_S = 5.0
LONGEST_BACKOFF_S = 60.0
# Reading costs 4 to 30 µs a line. An endpoint of many thousand lines is asked less often, so that it takes no
# more than this share of a core.
SHARE_OF_CORE = 0.05
# A label whose values never end (a request's number) would fill the journal.
MOST_SERIES = 5000
# So would labels, and names, of any length.
MOST_LETTERS = 2 << 20
# The labels are written anew as a whole when there are more of them.
TELL_EVERY_S = 10.0
INFINITY = float("inf")


class MetricFilters:
    """Which samples are kept: those that at least one filter fits.

    Args:
        wanted: expressions that are searched in ``endpoint.metric``; or a table of such with expressions for
            labels, all of which must be there and fit.

    Example:
        >>> filters = MetricFilters({"dcgm.*TEMP": {"gpu": "^[01]$"}})
        >>> filters.keep("dcgm.DCGM_FI_DEV_GPU_TEMP", {"gpu": "0"})
        True
    """

    __slots__ = ("_rules", "_rules_of")

    def __init__(self, wanted: Sequence[str] | Mapping[str, Mapping[str, str]]) -> None:
        import re  # 1.3 MB: only who sets filters pays for them

        labels_of = wanted if hasattr(wanted, "items") else {name: {} for name in wanted}
        self._rules = [
            (re.compile(name), [(label, re.compile(value)) for label, value in labels.items()])
            for name, labels in labels_of.items()
        ]
        self._rules_of: dict[str, list[list[tuple[str, re.Pattern[str]]]]] = {}

    def keep(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a sample of this ``endpoint.metric`` with these labels is kept."""
        rules = self._rules_of.get(name)
        if rules is None:
            rules = [conditions for metric, conditions in self._rules if metric.search(name)]
            self._rules_of[name] = rules
        return any(
            all(label in labels and value.search(labels[label]) for label, value in conditions)
            for conditions in rules
        )


class NumberedSeries:
    """The series of one endpoint, numbered metric by metric in the order in which their labels first appear.

    A number stays with its labels for as long as the monitor lives, whether the series is still told or not.
    """

    __slots__ = ("_families", "_keys", "_labels", "_letters", "_prefix", "count")

    def __init__(self, endpoint: str) -> None:
        self._prefix = f"openmetrics.{endpoint}."
        self._keys: dict[tuple[str, frozenset[tuple[str, str]]], str] = {}
        self._families: dict[str, exposition.MetricFamily] = {}
        self._labels: dict[str, list[dict[str, str]]] = {}
        self._letters = 0
        self.count = 0

    def key(self, found: exposition.Exposition, sample: exposition.ExpositionSample) -> str | None:
        """The key of a sample, or None if its series is new and there are too many, or too long ones."""
        series = (sample.name, frozenset(sample.labels.items()))
        key = self._keys.get(series)
        if key is None and self.count < MOST_SERIES and self._has_room(sample):
            labels = self._labels.setdefault(sample.name, [])
            if not labels:
                self._families[sample.name] = found.family(sample.name) or exposition.MetricFamily()
            key = self._keys[series] = f"{self._prefix}{sample.name}.{len(labels)}"
            labels.append(sample.labels)
            self.count += 1
        return key

    def _has_room(self, sample: exposition.ExpositionSample) -> bool:
        letters = sum(len(name) + len(value) for name, value in sample.labels.items()) + len(sample.name)
        if self._letters + letters > MOST_LETTERS:
            return False
        self._letters += letters
        return True

    def facts(self) -> dict[str, dict[str, object]]:
        """Metric -> its type, its help and unit if it has them, and the labels of its n-th series; a copy."""
        facts: dict[str, dict[str, object]] = {}
        for name, family in self._families.items():
            fact: dict[str, object] = {"type": family.type}
            if family.help:
                fact["help"] = family.help
            if family.unit:
                fact["unit"] = family.unit
            facts[name] = {**fact, "series": list(self._labels[name])}
        return facts


class _Scrape:
    """What is kept of one answer.

    Args:
        series: of the endpoint.
        keeps: whether a sample is wanted.

    ``samples`` were told, ``tried`` of them are wanted, ``kept`` have a series.
    """

    __slots__ = ("_keeps", "_series", "counters", "found", "gauges", "kept", "samples", "tried")

    def __init__(self, series: NumberedSeries, keeps: Callable[[exposition.ExpositionSample], bool]) -> None:
        self.found = exposition.Exposition()
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, float] = {}
        self.samples = self.tried = self.kept = 0
        self._series = series
        self._keeps = keeps

    def take(self, sample: exposition.ExpositionSample) -> None:
        """Put a sample under its key, if it is wanted and has one."""
        self.samples += 1
        kind = self.found.kind(sample.name)
        if kind == exposition.CREATED or not self._keeps(sample):
            return
        self.tried += 1
        key = self._series.key(self.found, sample)
        if key is None:
            return
        self.kept += 1
        if -INFINITY < sample.value < INFINITY:
            readings = self.counters if kind == exposition.COUNTER else self.gauges
            readings[key] = sample.value


class ExporterEndpoint:
    """Asks one URL at most once a second and writes what it tells.

    Its failures are its own: it is asked again after 1, 2, 4 … 60 s, and `reason` tells why.

    Args:
        name: as it stands in keys.
        headers: of each request.
        cpu_s: the clock of the CPU time that the asking thread has used.

    Raises:
        ValueError: the URL is none.
    """

    __slots__ = (
        "_address", "_aside", "_backoff", "_bad_lines", "_cpu_s", "_fault", "_filters", "_headers", "_hung",
        "_known", "_next_s", "_series", "_tell_s", "_told_count", "name", "told",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        url: str,
        headers: Mapping[str, str],
        filters: MetricFilters | None,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self.name = name
        self._address = http.HttpAddress(url)
        self._headers = headers
        self._filters = filters
        self._cpu_s = cpu_s
        self._series = NumberedSeries(name)
        self._known = exposition.HeadCache()
        self._aside = BackgroundReader(self._ask, EVERY_S, PATIENCE_S)
        self._next_s = self._tell_s = -INFINITY
        # Many monitors may ask the same exporter.
        self._backoff = Backoff(EVERY_S, LONGEST_BACKOFF_S, Random().random)
        self._told_count = 0
        self._fault = self._hung = self._bad_lines = ""
        # Another object whenever there is more to tell.
        self.told: dict[str, object] = {"url": str(self._address), "metrics": {}}

    @property
    def reason(self) -> str:
        """Why it tells nothing, or not all; "" while all is well."""
        return self._hung or self._fault

    @property
    def pending(self) -> bool:
        """Whether its first answer is under way."""
        return self._aside.pending and not self._told_count and not self._fault

    def sample(self, tick: Tick) -> None:
        """Write what it has answered; waits no longer than `PATIENCE_S`, and raises nothing."""
        try:
            self._aside.sample(tick)
        except Hung:
            # Always in the same words: each new text is a record in the journal.
            self._hung = f"{self._address} has not answered for more than 30 s; nor does it let go"
        except Exception as error:  # noqa: BLE001 - whatever it is, the other endpoints go on
            self._hung = f"{self._address}: {type(error).__name__}: {error}"
        else:
            self._hung = ""

    def close(self) -> None:
        self._aside.close()

    def _ask(self, tick: Tick) -> None:
        """In the thread: one request, unless it is too early for one."""
        if tick.mono_s < self._next_s:
            return
        began_s = self._cpu_s()
        page = _Scrape(self._series, self._keeps)
        try:
            self._scrape(page)
        except (http.HttpError, ValueError) as error:
            self._backoff.failed(tick.mono_s)
            self._next_s = self._backoff.until_s
            self._fault = str(error)
            return
        self._backoff.worked()
        tick.gauges.update(page.gauges)
        tick.counters.update(page.counters)
        self._fault = "; ".join(self._notes(page))
        self._tell(tick.mono_s)
        self._next_s = tick.mono_s + (self._cpu_s() - began_s) / SHARE_OF_CORE

    def _scrape(self, page: _Scrape) -> None:
        """Fill a page piece by piece: an answer of many MB never lies in memory as a whole."""
        parser = exposition.ExpositionParser(page.take, self._known, found=page.found)
        answer = http.get(self._address, self._headers, TIMEOUT_S, take=parser.feed)
        parser.end()
        found = page.found
        if "openmetrics" in answer.headers.get("content-type", "") and not found.ended:
            raise ValueError(f"{self._address} sent a text that is cut off: it has no # EOF")
        if found.bad and not parser.taken:
            raise ValueError(f"{self._address} sent no metrics: {found.first_bad}")

    def _notes(self, page: _Scrape) -> list[str]:
        """What there is to say about the part of an answer that is not kept."""
        notes = []
        if page.found.bad:
            # The first of them stays: the next may have another number in it, and each new text is a record.
            told = f"some lines are left out, such as {page.found.first_bad}"
            self._bad_lines = self._bad_lines or told
            notes.append(self._bad_lines)
        else:
            self._bad_lines = ""
        if page.samples and not page.tried and self._filters is not None:
            notes.append("openmetrics_filters keep none of its metrics")
        if page.kept < page.tried:
            full = self._series.count >= MOST_SERIES
            most = f"{MOST_SERIES} series" if full else f"{MOST_LETTERS} letters of labels"
            notes.append(f"more than {most}; openmetrics_filters can choose among them")
        return notes

    def _keeps(self, sample: exposition.ExpositionSample) -> bool:
        return self._filters is None or self._filters.keep(f"{self.name}.{sample.name}", sample.labels)

    def _tell(self, mono_s: float) -> None:
        if self._series.count == self._told_count or mono_s < self._tell_s:
            return
        self._tell_s = mono_s + TELL_EVERY_S
        self._told_count = self._series.count
        self.told = {"url": str(self._address), "metrics": self._series.facts()}
