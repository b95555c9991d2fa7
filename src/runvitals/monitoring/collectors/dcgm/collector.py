"""The collector of DCGM metrics: a host's exporter (`/metrics`), or a Prometheus that scrapes several."""

from __future__ import annotations

import os

from runvitals.base.json_codec import loads
from runvitals.monitoring.collectors.dcgm.fields import (
    COUNTERS,
    FACTS,
    FLOWS,
    GAUGES,
    MEMORY,
    MIB,
    RATIOS,
    THROTTLE_REASONS,
    THROTTLED,
    XID,
    DcgmSeries,
    Preferences,
    is_blank,
    of_host,
)
from runvitals.monitoring.collectors.dcgm.gaps import ExporterGaps
from runvitals.monitoring.collectors.nvidia.recovery import recovery_events
from runvitals.monitoring.collectors.nvidia.throttling import ThrottledTime
from runvitals.monitoring.collectors.nvidia.xid import CriticalErrors, xid_event
from runvitals.monitoring.collectors.plumbing import exposition, http
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runvitals.monitoring.collectors.base import Tick

# The exporter updates every 30 s, or every 1 s at most. Its text costs 30 µs a line.
EVERY_S = 5.0
PATIENCE_S = 0.02
PREFIX = "DCGM_FI_"
# 16 GPUs of 7 slices each with 100 metrics are below this.
MAX_SERIES = 20_000
# Slices report up to this share of what is theirs. More is no reading, and the monitor leaves it out.
MAX_OF_SLICE = 2.0
# Higher numbers of an error, or of active throttling reasons, stand for no value.
MAX_XID, MAX_BITS = 65_535, 1 << 31
ALL_FIELDS = '{__name__=~"DCGM_FI_.+"}'


class NoSeries(Exception):
    """The exporter responds, but reports no GPU."""


class Dcgm:
    """`gpu.{i}.…` and `gpu.{i}.mig.…` as reported by the exporter.

    Keys that another source, such as `nvidia`, has written are left to it.

    Args:
        url: of the exporter (`http://localhost:9400/metrics`), or of Prometheus queries
            (`http://prometheus:9090/api/v1/query?query=DCGM_FI_DEV_GPU_TEMP&query=…`; without a query, all
            metrics of DCGM).
        headers: for the requests.
        hostname: the host whose GPUs are read, if a Prometheus reports several hosts.

    Raises:
        HttpError, NoSeries, ValueError, Hung: by `sample`.
    """

    name = "dcgm"

    def __init__(self, url: str, headers: Mapping[str, str], hostname: str = "") -> None:
        self.facts: dict[str, object] | None = None
        self.absent: dict[str, str] = {}
        self._urls = _query_urls(url)
        self._headers = dict(headers)
        self._hostname = hostname or os.uname().nodename
        self._others: set[str] = set()
        self._totals: dict[str, tuple[float, float]] = {}
        self._xids: dict[int, float] = {}
        self._recovery: dict[int, int] = {}
        self._gaps = ExporterGaps()
        self._errors = CriticalErrors()
        self._throttled: dict[int, ThrottledTime] = {}
        # (GPU, metric) reported without a slice's label.
        self._boards: set[tuple[int | None, str]] = set()
        self._preferences = Preferences()
        self._reader = BackgroundReader(self._read_all, every_s=EVERY_S, patience_s=PATIENCE_S)

    @property
    def pending(self) -> bool:
        """Whether the exporter has not responded yet."""
        return self._reader.pending

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        # Earlier sources have written their keys. Two sources alternating in one key would make it jump.
        for key in (*tick.gauges, *tick.counters):
            if key.startswith("gpu."):
                self._others.add(key)
        own_tick = type(tick)(tick.mono_s)
        self._reader.sample(own_tick)
        for ours, theirs in ((own_tick.gauges, tick.gauges), (own_tick.counters, tick.counters)):
            theirs.update((key, value) for key, value in ours.items() if key not in self._others)
        tick.events += own_tick.events

    def close(self) -> None:
        """Release what is open."""
        self._reader.close()

    # -- in the thread

    def _read_all(self, tick: Tick) -> None:
        series = [each for url in self._urls for each in self._read(url)]
        series = of_host((each for each in series if each.index is not None), self._hostname)
        if not series:
            raise NoSeries(f"{http.HttpAddress(self._urls[0])} responds, but reports no GPU")
        self._update_facts(series)
        event_count = len(tick.events)
        exported = series
        series = self._of_boards([each for each in series if not is_blank(each.value)])
        series = self._preferences.select(series)
        memory: dict[str, dict[str, float]] = {}
        for each in series:
            self._write(tick, each, memory)
        self._errors.note(tick, event_count)
        for gpu, throttled in self._throttled.items():
            for end, seconds in throttled.seconds().items():
                tick.counters[f"gpu.{gpu}.{end}"] = seconds
        for prefix, sizes in memory.items():
            _write_memory(tick, prefix, sizes)
        for index in {each.index for each in series if each.index is not None}:
            self._derive(tick, index)
        keys = {**tick.gauges, **tick.counters}.keys() | self._totals.keys()
        absent = self._gaps.explain(exported, keys, self._others, self._throttled, tick.mono_s)
        if absent != self.absent:
            self.absent = absent

    def _read(self, url: str) -> Iterator[DcgmSeries]:
        if "/api/v1/query" in url:
            yield from _of_query(http.get(url, self._headers).body)
            return
        page = exposition.Exposition()
        series: list[DcgmSeries] = []

        def take(sample: exposition.ExpositionSample) -> None:
            if sample.name.startswith(PREFIX) and len(series) < MAX_SERIES:
                is_total = page.kind(sample.name) == exposition.COUNTER
                name = sample.name.removeprefix(PREFIX)
                series.append(DcgmSeries(name, sample.labels, sample.value, is_total))

        parser = exposition.ExpositionParser(take, page=page)
        http.get(url, self._headers, take=parser.feed)
        parser.end()
        yield from series

    def _of_boards(self, series: list[DcgmSeries]) -> list[DcgmSeries]:
        """Turn board metrics that exporters repeat for each slice into metrics of the board.

        Only if no series of the board itself was ever reported and all slices have the same value.
        """
        self._boards.update((each.index, each.name) for each in series if not each.slice)
        repeated: dict[tuple[int | None, str], list[DcgmSeries]] = {}
        kept = []
        for each in series:
            if not each.slice or each.is_of_slice:
                kept.append(each)
            elif each.name in FLOWS:
                continue  # slices have no links
            elif (each.index, each.name) not in self._boards:
                repeated.setdefault((each.index, each.name), []).append(each)
        agreed = (group for group in repeated.values() if all(each.value == group[0].value for each in group))
        return kept + [group[0].of_board() for group in agreed]

    def _write(self, tick: Tick, series: DcgmSeries, memory: dict[str, dict[str, float]]) -> None:
        prefix = f"gpu.{series.index}.{series.slice}"
        name, value = series.name, series.value
        if name in GAUGES:
            end, factor = GAUGES[name]
            # Boards without a memory sensor report 0 °C.
            if value > 0 or end != "memoryTemp":
                tick.gauges[prefix + end] = value * factor
        elif name in COUNTERS:
            end, factor = COUNTERS[name]
            tick.counters[prefix + end] = value * factor
        elif name in RATIOS:
            share = min(value, 1.0) if value <= MAX_OF_SLICE else value
            tick.gauges[prefix + RATIOS[name]] = share * 100.0
        elif name in MEMORY:
            memory.setdefault(prefix, {})[name] = value
        elif name in FLOWS:
            self._write_flow(tick, prefix + FLOWS[name], series)
        elif series.index is not None:
            self._accumulate(tick, series.index, series)

    def _derive(self, tick: Tick, index: int) -> None:
        """Write what follows from other readings of a board."""
        prefix = f"gpu.{index}."
        watts = tick.gauges.get(prefix + "powerWatts")
        limit = tick.gauges.get(prefix + "enforcedPowerLimitWatts")
        if watts is not None and limit:
            tick.gauges[prefix + "powerPercent"] = watts * 100.0 / limit
        before = self._recovery.get(index, 0)
        action = self._recovery[index] = int(tick.gauges.get(prefix + "recoveryAction", before))
        if prefix + "recoveryAction" not in self._others:  # that source has its own events
            tick.events += recovery_events(index, before, action)

    def _accumulate(self, tick: Tick, index: int, series: DcgmSeries) -> None:
        """Process a series that needs its earlier values."""
        if series.name == XID:
            self._note_xid(tick, index, series.value)
        elif series.name in THROTTLED:
            reason = THROTTLED[series.name]
            self._throttled.setdefault(index, ThrottledTime()).count(reason, series.value / 1e9)
        elif series.name in THROTTLE_REASONS and series.value < MAX_BITS:
            self._throttled.setdefault(index, ThrottledTime()).note(int(series.value), tick.mono_s)

    def _write_flow(self, tick: Tick, key: str, series: DcgmSeries) -> None:
        if not series.is_total:
            tick.gauges[key] = series.value
            return
        before_s, before = self._totals.get(key, (tick.mono_s, series.value))
        self._totals[key] = tick.mono_s, series.value
        if tick.mono_s > before_s and series.value >= before:
            tick.gauges[key] = (series.value - before) / (tick.mono_s - before_s)

    def _note_xid(self, tick: Tick, index: int, value: float) -> None:
        """The exporter repeats the last error for ever. Only a change is an event."""
        if value > MAX_XID:
            return  # stands for no value
        before = self._xids.get(index)
        self._xids[index] = value
        if before is not None and value not in (0.0, before):
            tick.events.append(xid_event(index, int(value)))

    def _update_facts(self, series: list[DcgmSeries]) -> None:
        gpus: dict[tuple[int, str], dict[str, object]] = {}
        properties: dict[int, dict[str, object]] = {}
        for each in series:
            if each.index is None:
                continue
            if each.name in FACTS and not is_blank(each.value):
                properties.setdefault(each.index, {})[FACTS[each.name]] = each.value
            if (each.index, each.slice) in gpus:
                continue
            about = {
                "index": each.index,
                "uuid": each.labels.get("UUID") or each.labels.get("uuid"),
                "name": each.labels.get("modelName"),
                "pci": each.labels.get("pci_bus_id"),
                "slice": each.labels.get("GPU_I_ID"),
                "profile": each.labels.get("GPU_I_PROFILE"),
                "host": each.host,
            }
            gpus[each.index, each.slice] = {
                name: text for name, text in about.items() if text not in (None, "")
            }
        facts: dict[str, object] = {
            "gpu_dcgm": [{**gpus[key], **properties.get(key[0], {})} for key in sorted(gpus)]
        }
        if facts != self.facts:
            self.facts = facts


def _write_memory(tick: Tick, prefix: str, sizes: Mapping[str, float]) -> None:
    """Used bytes and percent: of the reported total, else of the sum of the parts."""
    used = sizes.get("DEV_FB_USED")
    if used is None:
        return
    total = sizes.get("DEV_FB_TOTAL")
    if total is None and "DEV_FB_FREE" in sizes:
        total = used + sizes["DEV_FB_FREE"] + sizes.get("DEV_FB_RESERVED", 0.0)
    if total == 0.0:
        return  # 0 of 0: it shares the host's memory
    tick.gauges[prefix + "memoryAllocatedBytes"] = used * MIB
    if total:
        tick.gauges[prefix + "memoryAllocated"] = used * 100.0 / total


def _of_query(body: bytes) -> Iterator[DcgmSeries]:
    """Yield the series in Prometheus' response to an instant query.

    Raises:
        ValueError: the response is invalid, or an error.
    """
    response = loads(body)
    if not isinstance(response, dict) or response.get("status") != "success":
        message = response.get("error") if isinstance(response, dict) else response
        raise ValueError(f"query rejected by Prometheus: {message!s:.200}")
    data = response.get("data")
    results = data.get("result") if isinstance(data, dict) else None
    for result in results if isinstance(results, list) else ():
        labels = result.get("metric") if isinstance(result, dict) else None
        pair = result.get("value") if isinstance(result, dict) else None
        if not isinstance(labels, dict) or not isinstance(pair, list) or len(pair) != 2:
            continue
        name = labels.get("__name__", "")
        try:
            value = float(pair[1])
        except (TypeError, ValueError):  # skip only this entry
            continue
        if isinstance(name, str) and name.startswith(PREFIX):
            yield DcgmSeries(name.removeprefix(PREFIX), labels, value, is_total=False)


def _query_urls(url: str) -> list[str]:
    """Return the URLs, one for each query."""
    path, _, rest = url.partition("?")
    queries = [part.removeprefix("query=") for part in rest.split("&") if part.startswith("query=")]
    if not queries and "/api/v1/query" not in path:
        return [url]
    base = path.partition("/api/v1/query")[0].rstrip("/")
    return [f"{base}/api/v1/query?query={_quote(http.unquote(query))}" for query in queries or [ALL_FIELDS]]


def _quote(text: str) -> str:
    plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~"
    return "".join(
        letter if letter in plain else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in text
    )
