"""`RuleWatch`: evaluates the rules of all teams and users, and the conditions of automations about metrics.

Ingest puts what it stored into a queue and goes on; the thread takes it from there. It reads the metadata
store when a host appears and once a minute, never for a sample, and asks each second whether rules changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final

from runvitals.model.durations import DAY_MS, MINUTE_MS
from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.state import LOST, MONITOR, RUNNING
from runvitals.server.alerts.evaluation import FIRING, OK, EvaluatedSeries, InstanceState, Slot, Transition
from runvitals.server.alerts.metric_automations import MetricAutomations
from runvitals.server.alerts.rules import AlertRule, Feature, InvalidRule, rule
from runvitals.server.alerts.sample_queue import SampleQueue
from runvitals.server.alerts.silence import SilenceWatch
from runvitals.server.alerts.spread import SpreadWatch
from runvitals.server.alerts.storage.rules import RuleState, StoredRule, WatchedLane
from runvitals.server.alerts.watched_series import WatchedHost, WatchedSeries
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleBatch, SampleStore
from runvitals.store.supervised_thread import SupervisedThread

LATE_MS: Final = 10 * MINUTE_MS
"""Older samples are not evaluated: nobody is notified of what a journal reports days later."""
FORGET_MS: Final = 60 * MINUTE_MS
"""A host that sent nothing for so long is not watched any more, except by rules about silence."""
REST_MS: Final = DAY_MS
"""The last points of a run that logs nothing are kept so long, for automations; of one that has ended, for
`_MATCH_MS`."""
_EVERY_S: Final = 1.0
_MATCH_MS: Final = MINUTE_MS
_COMPARE_MS: Final = 10_000
_SAVE_MS: Final = 30_000
_REBUILD_MS: Final = 5_000

Heard = Callable[[StoredRule, AlertRule, Transition, WatchedLane], None]
log = logging.getLogger("runvitals.server")


class RuleWatch:
    """Evaluates rules.

    Args:
        samples: what windows are filled from when a rule or host is new; None: they begin empty.
        on_transition: called when a rule begins to fire for a series, or is over.
        clock: the time now, ms UTC.
        leads: whether this server evaluates the rules; another one does otherwise.
        watches_all: whether a rule may look at the runs of all teams and users.

    Attributes:
        queue: ingest adds to it.
        thread: start and close it.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        samples: SampleStore | None,
        on_transition: Heard,
        clock: Callable[[], int],
        leads: Callable[[], bool] = lambda: True,
        watches_all: Callable[[StoredRule], bool] = lambda stored_rule: False,
    ) -> None:
        self._watches_all = watches_all
        self._automations = MetricAutomations(metadata_store)
        self._store = metadata_store
        self._samples = samples
        self._on_transition = on_transition
        self._clock = clock
        self._leads = leads
        self.queue = SampleQueue()
        self._begin()
        self.thread = SupervisedThread("alert-rules", self._turn, every_s=_EVERY_S)

    def _begin(self) -> None:
        """Know nothing yet: the rules and their states are read at the first evaluation."""
        self.queue.is_used = self.queue.has_rules = False
        self._version: tuple[int, int, int] | None = None
        self._rules: dict[int, tuple[StoredRule, AlertRule]] = {}
        self._hosts: dict[int, WatchedHost] = {}
        self._resting: dict[int, WatchedHost] = {}
        self._lanes: dict[int, WatchedLane] = {}
        self._ignored: set[int] = set()
        self._series = WatchedSeries([])
        self._spread = SpreadWatch(self._series, self._comparing)
        self._silence = SilenceWatch(self._store.alerts.rules)
        self._waiting: list[SampleBatch] = []
        self._is_old = False
        self._done_ms: dict[str, int] = {}
        self._saved: list[RuleState] = []
        self._saved_lanes: set[int] = set()

    def evaluate(self) -> None:
        """Evaluate what was queued, and what depends on the time alone."""
        now_ms = self._clock()
        self.queue.is_used = True
        batches = [*self._waiting, *self.queue.take()]
        self._waiting = []
        self._read_rules()  # after it: a rule sees everything that was stored since it was saved
        if not self._rules:
            return
        self._note(batches, now_ms)
        if self._due("match", _MATCH_MS, now_ms):
            self._match(now_ms)
        if self._is_old:
            if not self._due("rebuild", _REBUILD_MS, now_ms):
                self._waiting = batches
                return
            self._rebuild(batches)
        self._add(batches, now_ms)
        if self._due("compare", _COMPARE_MS, now_ms):
            self._heard(self._spread.compare(now_ms))
            rules = [rule for _, rule in self._rules.values()]
            self._heard(self._silence.look(rules, self._hosts, self._series, now_ms))
        if self._due("save", _SAVE_MS, now_ms):
            self._save()

    def close(self) -> None:
        """Evaluate what is queued, keep the state and end the thread."""
        self.thread.close()
        if self._version is not None and self._rules:
            self._save()

    def _turn(self) -> bool:
        closing = self.thread.closing.is_set()
        if self._leads():
            self.evaluate()
        elif self._version is not None:
            self._begin()
        return not closing

    def _due(self, task: str, every_ms: int, now_ms: int) -> bool:
        done_ms = self._done_ms.get(task)
        if done_ms is not None and 0 <= now_ms - done_ms < every_ms:
            return False
        self._done_ms[task] = now_ms
        return True

    def _read_rules(self) -> None:
        version = self._store.alerts.rules.version()
        if not self._automations.has_changed() and version == self._version:
            return
        is_first, self._version = self._version is None, version
        rules = {
            stored_rule.id: (stored_rule, alert_rule) for stored_rule, alert_rule in self._automations.rules()
        }
        for stored_rule in self._store.alerts.rules.all():
            if not stored_rule.enabled:
                continue
            try:
                alert_rule = rule(stored_rule.definition, stored_rule.id)
            except InvalidRule as error:  # written by a later version
                log.warning("rule %d cannot be evaluated: %s", stored_rule.id, error)
                continue
            if alert_rule.condition.kind != "finding":  # `FindingWatch` evaluates it
                rules[stored_rule.id] = (stored_rule, alert_rule)
        self._rules = rules
        self.queue.has_rules = bool(rules)
        self._ignored.clear()
        self._done_ms.pop("match", None)
        self._done_ms.pop("rebuild", None)
        self._is_old = True
        if is_first:
            self._restore()

    def _restore(self) -> None:
        """Go on with the states of before a restart.

        What fires is known even if the server was killed before it kept its states.
        """
        self._saved = self._store.alerts.rules.states()
        kept_keys = {(state.rule_id, state.lane_id, state.key) for state in self._saved}
        self._saved += [
            RuleState(
                firing.rule_id,
                firing.run_id,
                firing.lane_id,
                firing.key,
                firing.host,
                FIRING,
                firing.fired_ms,
                firing.fired_ms,
            )
            for firing in self._store.alerts.firings.open()
            if firing.rule_id in self._rules and (firing.rule_id, firing.lane_id, firing.key) not in kept_keys
        ]
        lanes = {state.lane_id for state in self._saved}
        self._learn(lanes, self._clock())

    def _note(self, batches: Iterable[SampleBatch], now_ms: int) -> None:
        """Learn of hosts and metrics that are new."""
        unknown = {batch.run for batch in batches} - self._hosts.keys() - self._resting.keys() - self._ignored
        if unknown:
            self._learn(unknown, now_ms)
        for batch in batches:
            host = self._hosts.get(batch.run) or self._resting.get(batch.run)
            if host is None:
                continue
            host.heard_ms = now_ms
            if batch.run in self._resting and not host.has_ended:
                self._done_ms.pop("match", None)
            new = [metric for metric in batch.metrics if metric not in host.metrics]
            if new:
                host.metrics.update(self._store.metrics.keys(new))
                self._is_old = True

    def _learn(self, lane_ids: Iterable[int], now_ms: int) -> None:
        ids = set(lane_ids)
        lanes = self._store.alerts.rules.lanes(ids)
        for lane_id, lane in lanes.items():
            self._lanes[lane_id] = lane
            self._hosts[lane_id] = WatchedHost(
                lane_id,
                lane.run_id,
                lane.host,
                lane.role,
                heard_ms=now_ms,
                rank=lane.rank,
                project_id=lane.project_id,
            )
        self._ignored |= ids - lanes.keys()
        self._done_ms.pop("match", None)

    def _learn_what_others_hear(self, now_ms: int) -> None:
        """Watch the hosts that others hear: one may fall silent while this server starts, or theirs ends."""
        if any(rule.condition.of == "host" for _, rule in self._rules.values()):
            heard = self._store.alerts.rules.heard_since(now_ms - FORGET_MS)
            unknown = heard.keys() - self._hosts.keys() - self._resting.keys() - self._ignored
            if unknown:
                self._learn(unknown, now_ms)
            for lane_id in unknown & self._hosts.keys():
                self._hosts[lane_id].heard_ms = heard[lane_id]

    def _match(self, now_ms: int) -> None:
        """Find out which rules are about which hosts; forget hosts that ended, and those of ended runs."""
        self._learn_what_others_hear(now_ms)
        self._let_rest(now_ms)
        run_ids = {host.run_id for host in self._hosts.values()}
        matching = {
            text: self._store.runs.matching(run_ids, Filter(terms=parse(text)), now_ms)
            for text in {alert_rule.filter for _, alert_rule in self._rules.values() if alert_rule.filter}
        }
        by_owner: dict[int | None, list[AlertRule]] = {}
        of_points: dict[int | None, list[AlertRule]] = {}
        of_all: list[AlertRule] = []
        for stored_rule, alert_rule in self._rules.values():
            if alert_rule.condition.kind == "points":
                of_points.setdefault(stored_rule.entity_id, []).append(alert_rule)
            elif not alert_rule.everywhere:
                by_owner.setdefault(stored_rule.entity_id, []).append(alert_rule)
            elif self._watches_all(stored_rule):
                of_all.append(alert_rule)
        known_rules: dict[tuple[int, ...], tuple[AlertRule, ...]] = {}
        for lane_id, host in (*self._hosts.items(), *self._resting.items()):
            lane = self._lanes[lane_id]
            host.project_id = lane.project_id
            of_host = [*by_owner.get(lane.entity_id, ()), *(of_all if lane.role == MONITOR else ())]
            rules = tuple(
                alert_rule
                for alert_rule in (of_host if lane_id in self._hosts else ())
                if (not alert_rule.projects or lane.project in alert_rule.projects)
                and (not alert_rule.hosts or any(fnmatchcase(lane.host, name) for name in alert_rule.hosts))
                and (not alert_rule.filter or lane.run_id in matching[alert_rule.filter])
            ) + (() if lane.role == MONITOR else tuple(of_points.get(lane.entity_id, ())))
            # One object for all hosts with the same rules: see `WatchedSeries`.
            rules = known_rules.setdefault(tuple(alert_rule.id for alert_rule in rules), rules)
            if rules is not host.rules and rules != host.rules:
                self._is_old = True
            host.rules = rules

    def _let_rest(self, now_ms: int) -> None:
        """Forget the hosts that no rule is about any more.

        Where automations count what a run logs, hosts rest instead: late points count too, and the last ones
        are kept while a run logs nothing.
        """
        hosts = {**self._resting, **self._hosts}
        self._lanes = self._store.alerts.rules.lanes(hosts)
        rows = self._store.runs.get(sorted({lane.run_id for lane in self._lanes.values()}), now_ms)
        heard = self._store.alerts.rules.heard_since(now_ms - FORGET_MS)
        ended = self._store.alerts.rules.ended_lanes(hosts)
        patience_ms = FORGET_MS + max((rule.for_ms for _, rule in self._rules.values()), default=0)
        teams = {
            stored_rule.entity_id
            for stored_rule, rule in self._rules.values()
            if rule.condition.kind == "points"
        }
        self._resting = {}
        for lane_id, host in hosts.items():
            lane, row = self._lanes.get(lane_id), rows.get(host.run_id)
            is_gone = lane is None or row is None
            host.has_ended = row is None or row.state not in (RUNNING, LOST) or lane_id in ended
            silent_ms = now_ms - host.heard_ms
            if not is_gone and not host.has_ended and silent_ms <= patience_ms:
                self._hosts[lane_id] = host
                continue
            if lane_id in self._hosts:
                self._forget(lane_id, now_ms, is_over=is_gone or host.has_ended or lane_id not in heard)
            is_counted = lane is not None and lane.role != MONITOR and lane.entity_id in teams
            if not is_gone and is_counted and silent_ms < (_MATCH_MS if host.has_ended else REST_MS):
                self._resting[lane_id] = host
            else:
                self._is_old = True

    def _forget(self, lane_id: int, now_ms: int, is_over: bool = True) -> None:
        """End what fires for a host whose run has ended; nobody is notified of that.

        Args:
            is_over: False if another server hears the host.
        """
        host = self._hosts.pop(lane_id)
        self._is_old = True
        for (rule_id, series), state in self._states().items():
            if is_over and series.lane_id == host.lane_id and state.state == FIRING:
                self._store.alerts.firings.end(rule_id, lane_id, series.key, now_ms)
        self._silence.forget(lane_id)

    def _rebuild(self, batches: Sequence[SampleBatch]) -> None:
        """Make the slots anew, after rules, hosts or metrics changed."""
        states = self._states()
        for saved in self._saved:
            series = EvaluatedSeries(saved.run_id, saved.lane_id, saved.host, saved.key)
            states.setdefault(
                (saved.rule_id, series), InstanceState(saved.state, saved.since_ms, saved.fired_ms)
            )
        before = self._series
        busy = {rule.condition.busy_metric for _, rule in self._rules.values()} - {""}
        self._series = WatchedSeries(
            [host for host in (*self._hosts.values(), *self._resting.values()) if host.rules],
            map(Feature, sorted(busy)),
        )
        changed = self._changed_rules(before)
        kept_states = {key: state for key, state in states.items() if key[0] not in changed}
        self._series.evaluation.take_over(before.evaluation)
        self._series.evaluation.restore(kept_states)
        self._fill(before, batches)
        self._spread = SpreadWatch(self._series, self._comparing)
        self._spread.restore(kept_states)
        for (rule_id, series), state in kept_states.items():
            pair = self._rules.get(rule_id)
            if pair is not None and pair[1].condition.kind == "silence" and state.state == FIRING:
                self._silence.restore(rule_id, series, state.since_ms)
        self._saved = [
            saved
            for saved in self._saved
            if saved.rule_id in self._rules and saved.lane_id not in self._hosts
        ]
        self._is_old = False

    def _changed_rules(self, before: WatchedSeries) -> set[int]:
        """Return the rules whose definition is another one now: their series begin anew."""
        old = {rule.id: rule for slot in before.evaluation.slots for rule in slot.rules}
        return {
            rule_id
            for rule_id, rule in old.items()
            if rule_id not in self._rules or self._rules[rule_id][1] != rule
        }

    def _comparing(self, slot: Slot) -> tuple[AlertRule, ...]:
        host = self._hosts[slot.series.lane_id]
        return tuple(rule for rule in host.rules if rule.condition.feature == slot.feature)

    def _fill(self, before: WatchedSeries, batches: Sequence[SampleBatch]) -> None:
        """Fill the windows of new slots with what is stored, so that a rule need not wait for its window.

        Args:
            batches: what is added next; only what is older fills the windows.
        """
        if self._samples is None:
            return
        keys = {(slot.series, slot.feature) for slot in before.evaluation.slots}
        new: dict[int, list[int]] = {}
        for index, slot in enumerate(self._series.evaluation.slots):
            if slot.feature.window_ms and (slot.series, slot.feature) not in keys:
                new.setdefault(slot.series.lane_id, []).append(index)
        next_ms: dict[int, int] = {}
        for batch in batches:
            if len(batch.t):
                first_ms = int(batch.t.min())
                next_ms[batch.run] = min(first_ms, next_ms.get(batch.run, first_ms))
        for lane_id, indexes in new.items():
            self._fill_host(lane_id, indexes, next_ms.get(lane_id, self._clock() + 1))

    def _fill_host(self, lane_id: int, indexes: list[int], before_ms: int) -> None:
        assert self._samples is not None
        evaluation = self._series.evaluation
        slots = [evaluation.slots[index] for index in indexes]
        reach_ms = max(slot.feature.window_ms + slot.feature.baseline_ms for slot in slots)
        ids = self._store.metrics.find({slot.series.key for slot in slots})
        response = self._samples.read([lane_id], sorted(ids.values()), before_ms - reach_ms, before_ms - 1)
        series_by_metric = {samples.metric: samples for samples in response.series}
        for index, slot in zip(indexes, slots, strict=True):
            samples = series_by_metric.get(ids.get(slot.series.key, -1))
            if samples is not None:
                evaluation.fill(index, samples.t, samples.values)

    def _add(self, batches: list[SampleBatch], now_ms: int) -> None:
        for samples in self._series.rounds(batches, now_ms - LATE_MS):
            self._heard(self._series.add(samples))

    def _heard(self, transitions: Iterable[Transition]) -> None:
        for transition in transitions:
            if transition.rule.condition.kind == "points":
                self._automations.note(transition)
                continue
            pair = self._rules.get(transition.rule.id)
            lane = self._lanes.get(transition.series.lane_id)
            if pair is not None and lane is not None:
                self._on_transition(pair[0], transition.rule, transition, lane)

    def _states(self) -> dict[tuple[int, EvaluatedSeries], InstanceState]:
        return {**self._series.evaluation.state(), **self._spread.state(), **self._silence.state()}

    def _save(self) -> None:
        """Keep the states of what does not rest."""
        states = [
            RuleState(
                rule_id,
                series.run_id,
                series.lane_id,
                series.key,
                series.host,
                state.state,
                state.since_ms,
                state.fired_ms,
            )
            for (rule_id, series), state in self._states().items()
            if rule_id > 0 and (state.state != OK or state.fired_ms is not None)
        ]
        rows = [*states, *self._saved]
        now = self._hosts.keys() | {row.lane_id for row in rows}
        self._store.alerts.rules.save_states(rows, now | self._saved_lanes)
        self._saved_lanes = now
