"""`SilenceWatch`: which metrics, hosts and trainings rules about silence find silent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from runvitals.model.durations import MINUTE_MS
from runvitals.model.state import MONITOR
from runvitals.server.alerts.evaluation import FIRING, EvaluatedSeries, InstanceState, Transition
from runvitals.server.alerts.rules import AlertRule, Feature
from runvitals.server.alerts.storage.rules import AlertRuleTable
from runvitals.server.alerts.watched_series import WatchedHost, WatchedSeries

FRESH_MS: Final = MINUTE_MS
_QUIET_MS: Final = 10_000


class SilenceWatch:
    """Looks for silence among what this server watches.

    Several servers may share a metadata store, and a host may send to any of them. When it was heard last is
    in the metadata store, so a host that another server hears is not silent here. Of its metrics and steps,
    the server decides that heard the host last.
    """

    def __init__(self, rules: AlertRuleTable) -> None:
        self._rule_table = rules
        self._silent: dict[tuple[int, EvaluatedSeries], int] = {}
        self._elsewhere: set[int] = set()

    def state(self) -> dict[tuple[int, EvaluatedSeries], InstanceState]:
        """Return what is silent, by rule and series."""
        return {key: InstanceState(FIRING, at_ms, at_ms) for key, at_ms in self._silent.items()}

    def restore(self, rule_id: int, series: EvaluatedSeries, since_ms: int) -> None:
        """Go on with what was silent before a restart."""
        self._silent.setdefault((rule_id, series), since_ms)

    def forget(self, lane_id: int) -> None:
        """Watch a host no more."""
        self._silent = {key: at_ms for key, at_ms in self._silent.items() if key[1].lane_id != lane_id}
        self._elsewhere.discard(lane_id)

    def look(
        self,
        rules: Iterable[AlertRule],
        hosts: Mapping[int, WatchedHost],
        series: WatchedSeries,
        now_ms: int,
    ) -> list[Transition]:
        """Return which rules begin to find something silent, and for which it is over."""
        known_rules = [rule for rule in rules if rule.condition.kind == "silence"]
        if not known_rules:
            return []
        self._ask_what_others_heard(hosts, now_ms)
        transitions: list[Transition] = []
        for rule in known_rules:
            for candidate, heard_ms in self._last_heard(rule, hosts, series, now_ms):
                silent = heard_ms is not None and now_ms - heard_ms >= rule.for_ms
                if silent and rule.condition.busy_metric:
                    silent = _is_busy(rule, candidate.run_id, series, now_ms)
                transitions += self._set(rule, candidate, silent, now_ms)
        return transitions

    def _ask_what_others_heard(self, hosts: Mapping[int, WatchedHost], now_ms: int) -> None:
        quiet = [lane_id for lane_id, host in hosts.items() if now_ms - host.heard_ms >= _QUIET_MS]
        heard = self._rule_table.last_heard(quiet) if quiet else {}
        self._elsewhere -= hosts.keys() - set(quiet)
        for lane_id, heard_ms in heard.items():
            if heard_ms > hosts[lane_id].heard_ms:
                hosts[lane_id].heard_ms = heard_ms
                self._elsewhere.add(lane_id)

    def _last_heard(
        self, rule: AlertRule, hosts: Mapping[int, WatchedHost], watched: WatchedSeries, now_ms: int
    ) -> Iterable[tuple[EvaluatedSeries, int | None]]:
        """Yield the series that a rule is about, and when each was heard last.

        The time is None if its silence does not count.
        """
        of, evaluation = rule.condition.of, watched.evaluation
        if of == "metric":
            assert rule.condition.feature is not None
            for at in watched.slots_of.get(rule.condition.feature, ()):
                series = evaluation.slots[at].series
                if rule in hosts[series.lane_id].rules and series.lane_id not in self._elsewhere:
                    last_ms = int(evaluation.last_ms[at])
                    yield series, last_ms if last_ms > 0 else None
            return
        if of == "rank":
            yield from _ranks([host for host in hosts.values() if rule in host.rules], rule.for_ms, now_ms)
            return
        by_run: dict[int, tuple[EvaluatedSeries, int]] = {}
        for host in hosts.values():
            if rule not in host.rules:
                continue
            series = EvaluatedSeries(host.run_id, host.lane_id, host.host, "")
            if of == "host" and host.role == MONITOR:
                yield series, host.heard_ms
            elif of == "steps" and host.role != MONITOR:
                latest = by_run.get(host.run_id)
                if latest is None or host.heard_ms > latest[1]:
                    by_run[host.run_id] = (latest[0] if latest else series, host.heard_ms)
        yield from by_run.values()

    def _set(self, rule: AlertRule, series: EvaluatedSeries, silent: bool, now_ms: int) -> list[Transition]:
        key = (rule.id, series)
        if silent == (key in self._silent):
            return []
        if silent:
            self._silent[key] = now_ms
        else:
            del self._silent[key]
        return [Transition(rule, series, silent, now_ms, float("nan"))]


def rank_key(rank: int) -> str:
    """Return what a rank is called in place of a metric."""
    return f"rank {rank}"


def _ranks(
    hosts: Iterable[WatchedHost], for_ms: int, now_ms: int
) -> Iterable[tuple[EvaluatedSeries, int | None]]:
    """Yield the ranks that log, each with when it was heard last; None where no rank of its run is heard."""
    ranks = [host for host in hosts if host.rank is not None and host.role != MONITOR]
    newest: dict[int, int] = {}
    for host in ranks:
        newest[host.run_id] = max(host.heard_ms, newest.get(host.run_id, 0))
    for host in ranks:
        assert host.rank is not None
        goes_on = now_ms - newest[host.run_id] < for_ms
        series = EvaluatedSeries(host.run_id, host.lane_id, host.host, rank_key(host.rank))
        yield series, host.heard_ms if goes_on else None


def _is_busy(rule: AlertRule, run_id: int, watched: WatchedSeries, now_ms: int) -> bool:
    evaluation = watched.evaluation
    for at in watched.slots_of.get(Feature(rule.condition.busy_metric), ()):
        fresh = evaluation.last_ms[at] > now_ms - FRESH_MS
        busy = evaluation.values[at] > rule.condition.busy_value
        if fresh and busy and evaluation.slots[at].series.run_id == run_id:
            return True
    return False
