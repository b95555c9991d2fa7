"""One endpoint of an exporter: scraped in a background thread, with a backoff when it fails.

Keys have no labels, so the series of a metric are numbered.
"""

from __future__ import annotations

import time
from _random import Random  # the C half of `random`, whose Python half would cost 1 MB

from runvitals.base.backoff import Backoff
from runvitals.monitoring.collectors.plumbing import exposition, http
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader, Hung

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence

    from runvitals.monitoring.collectors.base import Tick

EVERY_S = 1.0
# An exporter on this machine responds within a few ms, so its values belong to the same tick. Those of others
# arrive with the next one.
PATIENCE_S = 0.02
TIMEOUT_S = 5.0
MAX_BACKOFF_S = 60.0
# Parsing costs 4 to 30 µs a line. An endpoint with many thousand lines is scraped less often, so that it uses
# no more than this share of a core.
SHARE_OF_CORE = 0.05
# A label with ever new values (the id of a request) would fill the journal.
MAX_SERIES = 5000
# So would labels and names of unlimited length.
MAX_CHARACTERS = 2 << 20
# All labels are written again when there are new ones.
FACTS_EVERY_S = 10.0
INFINITY = float("inf")


class MetricFilters:
    """Selects samples: those that at least one filter matches.

    Args:
        filters: regular expressions to search in ``endpoint.metric``; or a mapping from such expressions to
            {label: expression}, where all labels must exist and match.

    Example:
        >>> filters = MetricFilters({"dcgm.*TEMP": {"gpu": "^[01]$"}})
        >>> filters.keep("dcgm.DCGM_FI_DEV_GPU_TEMP", {"gpu": "0"})
        True
    """

    __slots__ = ("_rules", "_rules_of")

    def __init__(self, filters: Sequence[str] | Mapping[str, Mapping[str, str]]) -> None:
        import re  # 1.3 MB, only if filters are set

        labels_of = filters if hasattr(filters, "items") else {name: {} for name in filters}
        self._rules = [
            (re.compile(name), [(label, re.compile(value)) for label, value in labels.items()])
            for name, labels in labels_of.items()
        ]
        self._rules_of: dict[str, list[list[tuple[str, re.Pattern[str]]]]] = {}

    def keep(self, name: str, labels: Mapping[str, str]) -> bool:
        """Return whether to keep a sample of this ``endpoint.metric`` with these labels."""
        rules = self._rules_of.get(name)
        if rules is None:
            rules = [conditions for metric, conditions in self._rules if metric.search(name)]
            self._rules_of[name] = rules
        return any(
            all(label in labels and value.search(labels[label]) for label, value in conditions)
            for conditions in rules
        )


class NumberedSeries:
    """The series of one endpoint, numbered per metric in the order in which their labels first appear.

    A number belongs to its labels for the lifetime of the monitor, even if the series disappears.
    """

    __slots__ = ("_characters", "_families", "_keys", "_labels", "_prefix", "count")

    def __init__(self, endpoint: str) -> None:
        self._prefix = f"openmetrics.{endpoint}."
        self._keys: dict[tuple[str, frozenset[tuple[str, str]]], str] = {}
        self._families: dict[str, exposition.ExpositionFamily] = {}
        self._labels: dict[str, list[dict[str, str]]] = {}
        self._characters = 0
        self.count = 0

    def key(self, page: exposition.Exposition, sample: exposition.ExpositionSample) -> str | None:
        """The key of a sample, or None if its series is new and a limit on number or length is reached."""
        series = (sample.name, frozenset(sample.labels.items()))
        key = self._keys.get(series)
        if key is None and self.count < MAX_SERIES and self._has_room(sample):
            labels = self._labels.setdefault(sample.name, [])
            if not labels:
                self._families[sample.name] = page.family(sample.name) or exposition.ExpositionFamily()
            key = self._keys[series] = f"{self._prefix}{sample.name}.{len(labels)}"
            labels.append(sample.labels)
            self.count += 1
        return key

    def _has_room(self, sample: exposition.ExpositionSample) -> bool:
        characters = sum(len(name) + len(value) for name, value in sample.labels.items()) + len(sample.name)
        if self._characters + characters > MAX_CHARACTERS:
            return False
        self._characters += characters
        return True

    def facts(self) -> dict[str, dict[str, object]]:
        """Metric -> its type, help and unit if it has them, and the labels of its series; a copy."""
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
    """The values of one scrape.

    Args:
        series: the endpoint's.
        keeps: whether a sample passes the filters.

    ``samples`` counts all of them, ``tried`` those that pass the filters, ``kept`` those that have a series.
    """

    __slots__ = ("_keeps", "_series", "counters", "gauges", "kept", "page", "samples", "tried")

    def __init__(self, series: NumberedSeries, keeps: Callable[[exposition.ExpositionSample], bool]) -> None:
        self.page = exposition.Exposition()
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, float] = {}
        self.samples = self.tried = self.kept = 0
        self._series = series
        self._keeps = keeps

    def take(self, sample: exposition.ExpositionSample) -> None:
        """Store a sample under its key, if it passes the filters and has one."""
        self.samples += 1
        kind = self.page.kind(sample.name)
        if kind == exposition.CREATED or not self._keeps(sample):
            return
        self.tried += 1
        key = self._series.key(self.page, sample)
        if key is None:
            return
        self.kept += 1
        if -INFINITY < sample.value < INFINITY:
            readings = self.counters if kind == exposition.COUNTER else self.gauges
            readings[key] = sample.value


class ExporterEndpoint:
    """Scrapes one URL at most once a second.

    A failure affects no other endpoint: it is retried after 1, 2, 4 … 60 s, and `reason` says why it failed.

    Args:
        name: its name in keys.
        headers: of each request.
        cpu_s: a clock of the CPU time used by the scraping thread.

    Raises:
        ValueError: the URL is invalid.
    """

    __slots__ = (
        "_address",
        "_backoff",
        "_bad_lines",
        "_cpu_s",
        "_facts_s",
        "_fault",
        "_filters",
        "_headers",
        "_heads",
        "_hung",
        "_next_s",
        "_reader",
        "_series",
        "_series_in_facts",
        "facts",
        "name",
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
        self._heads = exposition.HeadCache()
        self._reader = BackgroundReader(self._read, EVERY_S, PATIENCE_S)
        self._next_s = self._facts_s = -INFINITY
        # Random, for many monitors may scrape the same exporter.
        self._backoff = Backoff(EVERY_S, MAX_BACKOFF_S, Random().random)
        self._series_in_facts = 0
        self._fault = self._hung = self._bad_lines = ""
        # Replaced by a new object when there are new series.
        self.facts: dict[str, object] = {"url": str(self._address), "metrics": {}}

    @property
    def reason(self) -> str:
        """Why values are missing; "" while all is well."""
        return self._hung or self._fault

    @property
    def pending(self) -> bool:
        """Whether its first response has not arrived yet."""
        return self._reader.pending and not self._series_in_facts and not self._fault

    def sample(self, tick: Tick) -> None:
        """Write the values that have arrived. Waits at most `PATIENCE_S`, and raises nothing."""
        try:
            self._reader.sample(tick)
        except Hung:
            # A constant text: each new one is a record in the journal.
            self._hung = (
                f"{self._address} has not responded for more than 30 s, and the request cannot be aborted"
            )
        except Exception as error:  # noqa: BLE001 - the other endpoints must still be read
            self._hung = f"{self._address}: {type(error).__name__}: {error}"
        else:
            self._hung = ""

    def close(self) -> None:
        """Release what is open."""
        self._reader.close()

    def _read(self, tick: Tick) -> None:
        """In the thread: send one request if it is due."""
        if tick.mono_s < self._next_s:
            return
        began_s = self._cpu_s()
        scrape = _Scrape(self._series, self._keeps)
        try:
            self._scrape(scrape)
        except (http.HttpError, ValueError) as error:
            self._backoff.note_failure(tick.mono_s)
            self._next_s = self._backoff.until_s
            self._fault = str(error)
            return
        self._backoff.note_success()
        tick.gauges.update(scrape.gauges)
        tick.counters.update(scrape.counters)
        self._fault = "; ".join(self._notes(scrape))
        self._update_facts(tick.mono_s)
        self._next_s = tick.mono_s + (self._cpu_s() - began_s) / SHARE_OF_CORE

    def _scrape(self, scrape: _Scrape) -> None:
        """Parse a response in pieces: one of many MB is never held in memory as a whole."""
        parser = exposition.ExpositionParser(scrape.take, self._heads, page=scrape.page)
        response = http.get(self._address, self._headers, TIMEOUT_S, take=parser.feed)
        parser.end()
        page = scrape.page
        if "openmetrics" in response.headers.get("content-type", "") and not page.ended:
            raise ValueError(f"{self._address} sent a truncated response: it has no # EOF")
        if page.bad and not parser.taken:
            raise ValueError(f"{self._address} sent no metrics: {page.first_bad}")

    def _notes(self, scrape: _Scrape) -> list[str]:
        """Why a part of the response is not kept."""
        notes = []
        if scrape.page.bad:
            # Keep the first text: the next one may have another number in it, and each new text is a record.
            note = f"some lines could not be parsed, such as {scrape.page.first_bad}"
            self._bad_lines = self._bad_lines or note
            notes.append(self._bad_lines)
        else:
            self._bad_lines = ""
        if scrape.samples and not scrape.tried and self._filters is not None:
            notes.append("openmetrics_filters match none of its metrics")
        if scrape.kept < scrape.tried:
            full = self._series.count >= MAX_SERIES
            most = f"{MAX_SERIES} series" if full else f"{MAX_CHARACTERS} characters of labels"
            notes.append(f"more than {most}; use openmetrics_filters to select some")
        return notes

    def _keeps(self, sample: exposition.ExpositionSample) -> bool:
        return self._filters is None or self._filters.keep(f"{self.name}.{sample.name}", sample.labels)

    def _update_facts(self, mono_s: float) -> None:
        if self._series.count == self._series_in_facts or mono_s < self._facts_s:
            return
        self._facts_s = mono_s + FACTS_EVERY_S
        self._series_in_facts = self._series.count
        self.facts = {"url": str(self._address), "metrics": self._series.facts()}
