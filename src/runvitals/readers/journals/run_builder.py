"""Builds a `Run` from journal records, which may come from whole files or only from their ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from runvitals.journal import frames
from runvitals.journal.clock import RunClock, boot_id, writer_clock
from runvitals.journal.paths import is_edit, role_and_host
from runvitals.journal.records import Record
from runvitals.model.defined_metrics import defined_metrics
from runvitals.model.ending import Ending
from runvitals.model.host import Host, hosts_of
from runvitals.model.records import LOST, lost_records
from runvitals.model.run import Event, Rank, Run
from runvitals.model.state import MONITOR, RUNNING, TRAIN, silence_ms, worst
from runvitals.model.summary import SummaryRules, WriterSummary, combined_summary

DEFAULT_PROJECT = "default"
# Programs usually write few events. Of more than this, the first half and the newest are kept.
_MAX_EVENTS = 10_000
# Clocks of two machines may differ. A record from further in the future is not a sign of life, or the run
# would count as running until then.
_FUTURE_MS = 24 * 3600 * 1000


@dataclass(slots=True)
class WriterStatus:
    """A writer, as its records describe it.

    `ending` is None until it has recorded one; `clock` is the clock of its times if it belongs to this
    machine's current boot.
    """

    name: str
    role: str
    host: str
    pid: int | None = None
    rank: int | None = None
    interval_s: float | None = None
    started_ms: int = 0
    last_ms: int = 0
    ending: Ending | None = None
    clock: RunClock | None = None

    def now_ms(self, now_ms: int) -> int:
        """Return the time on its clock at our `now_ms`; they differ if ours was set since the start."""
        return now_ms if self.clock is None else now_ms - self.clock.ahead_ms()

    def is_alive(self, now_ms: int) -> bool:
        """Return whether its newest record is recent enough for it to count as running."""
        silent_ms = self.now_ms(now_ms) - self.last_ms
        return -_FUTURE_MS <= silent_ms <= silence_ms(self.interval_s)


class MergedSection:
    """A JSON object whose keys are set by records of several writers. For each key, the latest wins."""

    __slots__ = ("_set_ms", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._set_ms: dict[str, int] = {}

    def time_of(self, key: str) -> int:
        """Return when a key was set or removed; 0 if it never was."""
        return self._set_ms.get(key, 0)

    def update(self, values: dict[str, Any], time_ms: int) -> None:
        """Set the values that are not older than those there."""
        for key, value in values.items():
            if time_ms >= self._set_ms.get(key, time_ms):
                self.values[key] = value
                self._set_ms[key] = time_ms

    def remove(self, keys: list[str], time_ms: int) -> None:
        """Remove keys, unless they were set by a later record. Older records no longer set them."""
        for key in keys:
            if time_ms >= self._set_ms.get(key, time_ms):
                self.values.pop(key, None)
                self._set_ms[key] = time_ms


class RunBuilder:
    """Builds a `Run` from the records added so far.

    Example:
        >>> builder = RunBuilder("abc")
        >>> for record in read_run(folder):
        ...     builder.add(record)
        >>> builder.run(now_ms=1_700_000_000_000).state
        'finished'
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.writers: dict[str, WriterStatus] = {}
        self.events: list[Event] = []
        self.lost_records = 0
        self.problems: list[str] = []
        self.last: dict[str, Record] = {}
        self._sections: dict[str, MergedSection] = {}
        self._machines: dict[str, MergedSection] = {}
        self._sources: dict[str, MergedSection] = {}
        self._logged: dict[str, WriterSummary] = {}
        self._ranks: dict[tuple[str, int], Rank] = {}
        self._project = ""

    def add(self, record: Record) -> None:
        """Add one record."""
        if is_edit(record.writer):
            if record.type == frames.INFO:
                self._edit(record.time_ms, record.value)
            return
        writer = self.writer(record.writer)
        if record.time_ms:
            writer.last_ms = max(writer.last_ms, record.time_ms)
        if record.type == frames.SAMPLE:
            self._sample(writer, record)
            return
        fold = _FOLDS.get(record.type)
        if fold is not None:
            fold(self, writer, record.time_ms, record.value)

    def writer(self, name: str) -> WriterStatus:
        """Return a writer by name. Before its first record, role and host are taken from the name."""
        writer = self.writers.get(name)
        if writer is None:
            writer = self.writers[name] = WriterStatus(name, *role_and_host(name))
        return writer

    def _sample(self, writer: WriterStatus, record: Record) -> None:
        last_sample = self.last.get(writer.host)
        if writer.role == MONITOR and (last_sample is None or record.time_ms >= last_sample.time_ms):
            self.last[writer.host] = record

    def _start(self, writer: WriterStatus, time_ms: int, value: dict[str, Any]) -> None:
        writer.role = value.get("role") or writer.role
        writer.host = value.get("host") or writer.host
        writer.pid = value.get("pid")
        writer.rank = value.get("rank")
        writer.interval_s = value.get("interval_s")
        writer.started_ms = min(writer.started_ms or time_ms, time_ms)
        writer.clock = writer_clock(value, _this_boot())
        self._project = self._project or value.get("project") or ""
        if writer.role == TRAIN and writer.pid is not None:
            self._set_rank(writer.host, writer.pid, rank=writer.rank)

    def _info(self, writer: WriterStatus, time_ms: int, value: dict[str, Any]) -> None:
        for section, names in (value.get("removed") or {}).items():
            self._sections.setdefault(section, MergedSection()).remove(names, time_ms)
        for section, content in value.items():
            if not isinstance(content, dict) or section == "removed":
                continue  # the time, or a field of a newer version
            if section == "logged":
                self._logged_summary(writer).restore(content)
                continue
            if section == "metrics":
                self._logged_summary(writer).rules.define(content)
            if section == "machine":
                merged = self._machines.setdefault(writer.host, MergedSection())
            elif section == "sources":
                merged = self._sources.setdefault(writer.host, MergedSection())
            else:
                merged = self._sections.setdefault(section, MergedSection())
            merged.update(content, time_ms)

    def _edit(self, time_ms: int, value: dict[str, Any]) -> None:
        """Take what a user changed. It is not part of what the run's processes did."""
        content = value.get("run")
        if isinstance(content, dict):
            self._sections.setdefault("run", MergedSection()).update(content, time_ms)

    def about_time(self, keys: Iterable[str]) -> int:
        """Return the latest time at which one of these keys of the section `run` was set; 0: never."""
        about = self._sections.get("run")
        return 0 if about is None else max(map(about.time_of, keys), default=0)

    def _history(self, writer: WriterStatus, time_ms: int, value: dict[str, Any]) -> None:
        self._logged_summary(writer).add(value.get("data") or {}, time_ms)

    def _logged_summary(self, writer: WriterStatus) -> WriterSummary:
        return self._logged.setdefault(writer.name, WriterSummary())

    def _summary(self) -> dict[str, Any]:
        """Return the aggregates of logged values, overridden by entries that were set by hand."""
        rules = SummaryRules()
        rules.define(self._section("metrics"))
        return {**combined_summary(self._logged.values(), rules), **self._section("summary")}

    def _event(self, writer: WriterStatus, time_ms: int, value: dict[str, Any]) -> None:
        rest = {k: v for k, v in value.items() if k not in ("t", "name", "level", "text")}
        name, level, text = value.get("name") or "", value.get("level") or "info", value.get("text") or ""
        if name == LOST:
            self.lost_records += lost_records(value)
        if len(self.events) >= _MAX_EVENTS:
            del self.events[_MAX_EVENTS // 2]
        self.events.append(
            Event(time_ms, name, level, text, writer.host, writer.rank, rest),
        )

    def _lifecycle(self, writer: WriterStatus, time_ms: int, value: dict[str, Any]) -> None:
        what = value["what"]
        if what == "attach":
            self._set_rank(writer.host, value["pid"], **_pick(value, "rank", "local_rank", "world_size"))
        elif what == "finish":
            self._set_rank(writer.host, value["pid"], ended_ms=time_ms, **_pick(value, "exit_code"))
        elif what == "exit":
            how = _pick(value, "exit_code", "signal", "out_of_memory")
            self._set_rank(writer.host, value["pid"], ended_ms=time_ms, **how)
        elif what == "gap":
            since = int(value["since"])
            silent_s = (time_ms - since) / 1000
            text = f"no samples for {silent_s:.1f} s: the monitor was restarted"
            self.events.append(Event(time_ms, "gap", "warning", text, writer.host, None, {"since": since}))
        elif what == "end":
            writer.ending = Ending(value["state"], **_pick(value, "exit_code", "signal", "out_of_memory"))

    def _set_rank(self, host: str, pid: int, **facts: Any) -> None:
        rank = self._ranks.get((host, pid)) or Rank(host, pid)
        self._ranks[host, pid] = replace(rank, **facts)

    def _command(self) -> list[str]:
        """Return the command line, from the first host that reports it."""
        machines = (merged.values.get("command") for merged in self._machines.values())
        return next((words for words in map(_texts, machines) if words), [])

    def _section(self, name: str) -> dict[str, Any]:
        merged = self._sections.get(name)
        return merged.values if merged is not None else {}

    def hosts(self, now_ms: int) -> list[Host]:
        """Return all hosts, in the order they joined."""
        writers = sorted(self.writers.values(), key=lambda writer: (writer.started_ms, writer.name))
        return hosts_of(writers, lambda writer: writer.is_alive(now_ms))

    def run(self, now_ms: int) -> Run:
        """Return the run as it stands at `now_ms` (milliseconds UTC)."""
        hosts = self.hosts(now_ms)
        ending = worst(host.ending for host in hosts)
        started_ms = min(
            (writer.started_ms for writer in self.writers.values() if writer.started_ms), default=0
        )
        last_ms = max((writer.last_ms for writer in self.writers.values()), default=started_ms)
        ended_ms = None if ending.state == RUNNING else last_ms
        newest = max(self.writers.values(), key=lambda writer: writer.last_ms, default=None)
        until_ms = ended_ms if ended_ms is not None else now_ms if newest is None else newest.now_ms(now_ms)
        about = self._section("run")
        deleted_ms = self.about_time(["deleted"]) if about.get("deleted") is True else None
        return Run(
            id=self.run_id,
            project=str(about.get("project") or self._project or DEFAULT_PROJECT),
            name=str(about.get("name") or about.get("default_name") or self.run_id),
            group=_text_or_none(about.get("group")),
            job_type=_text_or_none(about.get("job_type")),
            tags=_texts(about.get("tags")),
            notes=str(about.get("notes") or ""),
            command=_texts(about.get("command")) or self._command(),
            ending=ending,
            started_ms=started_ms,
            ended_ms=ended_ms,
            duration_ms=max(0, until_ms - started_ms),
            config=dict(self._section("config")),
            summary=self._summary(),
            settings=dict(self._section("settings")),
            machines={host: dict(merged.values) for host, merged in self._machines.items()},
            sources={host: dict(merged.values) for host, merged in self._sources.items()},
            hosts=hosts,
            ranks=sorted(self._ranks.values(), key=lambda r: (r.rank is None, r.rank or 0, r.host, r.pid)),
            events=sorted(self.events, key=lambda event: event.time_ms),
            lost_records=self.lost_records,
            problems=list(self.problems),
            last={host: dict(zip(last.keys, last.values, strict=True)) for host, last in self.last.items()},
            defined_metrics=defined_metrics(self._section("metrics")),
            starred=about.get("starred") is True,
            deleted_ms=deleted_ms,
        )


_FOLDS = {
    frames.START: RunBuilder._start,
    frames.INFO: RunBuilder._info,
    frames.HISTORY: RunBuilder._history,
    frames.EVENT: RunBuilder._event,
    frames.LIFECYCLE: RunBuilder._lifecycle,
}


@cache
def _this_boot() -> str:
    return boot_id()


def _pick(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields of a record that are set. A missing field does not overwrite a known value."""
    return {name: value[name] for name in names if value.get(name) is not None}


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
