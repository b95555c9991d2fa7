"""Alert rules and automations about findings, after runs were judged.

A rule fires once for each run and finding id, however many hosts or devices it holds for, and is over when
the last finding of this id is. What was decided stands in the metadata store, so a restart changes nothing.
"""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final

from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.server.alerts.evaluation import EvaluatedSeries, Transition
from runvitals.server.alerts.rules import FINDING_SEVERITIES, AlertRule, InvalidRule, rule
from runvitals.server.alerts.storage.findings import FindingFiring, WatchedFinding, open_of
from runvitals.server.alerts.storage.rules import StoredRule, WatchedLane
from runvitals.server.clock import Due
from runvitals.server.events.automation_events import raise_findings
from runvitals.server.events.finding_changes import FindingChange
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.supervised_thread import SupervisedThread

LATE_MS: Final = HOUR_MS
"""Nobody is notified of what was over earlier, such as when a journal arrives late or runs are imported."""
OF_TRAINING: Final = ("hang", "loss_diverged", "loss_not_finite", "straggler")
"""Findings that tell what a training logs: rules about the hardware of all teams do not look at them."""
_EVERY_S: Final = 5.0
_CHECK_MS: Final = MINUTE_MS
_OVERLAP_MS: Final = MINUTE_MS
"""How far the clocks of servers that judge may differ."""

Heard = Callable[[StoredRule, AlertRule, Transition, WatchedLane], None]
log = logging.getLogger("runvitals.server")


class FindingWatch:
    """Evaluates the rules of all teams and users about findings.

    Args:
        on_transition: called when a rule begins to fire for a run, or is over.
        clock: the time now, ms UTC.
        leads: whether this server evaluates the rules; another one does otherwise.
        watches_all: whether a rule may look at the runs of all teams and users.

    Attributes:
        thread: start and close it.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        on_transition: Heard,
        clock: Callable[[], int],
        leads: Callable[[], bool] = lambda: True,
        watches_all: Callable[[StoredRule], bool] = lambda stored_rule: False,
    ) -> None:
        self._store = metadata_store
        self._findings = metadata_store.alerts.findings
        self._on_transition = on_transition
        self._clock = clock
        self._leads = leads
        self._watches_all = watches_all
        self._version: tuple[int, int, int] | None = None
        self._rules: dict[int, tuple[StoredRule, AlertRule]] = {}
        self._looked_ms = 0
        self._check = Due()
        self.thread = SupervisedThread("finding-rules", self._turn, every_s=_EVERY_S)

    def evaluate(self) -> None:
        """Evaluate the rules on the runs that were judged since the last time.

        After a change of rules, on all that go on.
        """
        version = self._store.alerts.rules.version()
        has_changed, self._version = version != self._version, version
        if has_changed:
            self._rules = self._read_rules()
        if not self._rules:
            return
        now_ms = self._clock()
        since_ms = now_ms - LATE_MS if has_changed else self._looked_ms - _OVERLAP_MS
        run_ids = self._findings.runs_judged_since(since_ms, with_running=has_changed)
        if has_changed or self._check.at(now_ms):  # a run may be in the trash
            self._check.wait(now_ms, _CHECK_MS)
            run_ids |= {firing.run_id for firing in self._findings.firings(self._rules)}
        self._looked_ms = now_ms
        if run_ids:
            self._look_at(run_ids, now_ms)

    def _turn(self) -> bool:
        closing = self.thread.closing.is_set()
        if not closing and self._leads():
            self.evaluate()
        elif not closing:
            self._version = None
        return not closing

    def _read_rules(self) -> dict[int, tuple[StoredRule, AlertRule]]:
        rules = {}
        for stored_rule in self._store.alerts.rules.all():
            try:
                alert_rule = rule(stored_rule.definition, stored_rule.id)
            except InvalidRule as error:  # written by a later version
                log.warning("rule %d cannot be evaluated: %s", stored_rule.id, error)
                continue
            if stored_rule.enabled and alert_rule.condition.kind == "finding":
                rules[stored_rule.id] = (stored_rule, alert_rule)
        return rules

    def _look_at(self, run_ids: set[int], now_ms: int) -> None:
        by_run: dict[int, list[WatchedFinding]] = defaultdict(list)
        for finding in self._findings.of_runs(run_ids):
            by_run[finding.run_id].append(finding)
        firings: dict[tuple[int, int], list[FindingFiring]] = defaultdict(list)
        for firing in self._findings.firings(self._rules, run_ids):
            firings[firing.rule_id, firing.run_id].append(firing)
        matching = self._matching(run_ids, now_ms)
        for stored_rule, alert_rule in self._rules.values():
            watches_all = alert_rule.everywhere and self._watches_all(stored_rule)
            for run_id in run_ids:
                before = firings.get((alert_rule.id, run_id), [])
                about = [
                    finding
                    for finding in by_run.get(run_id, ())
                    if (
                        watches_all
                        or (finding.entity_id == stored_rule.entity_id and not alert_rule.everywhere)
                    )
                    and is_about(alert_rule, finding)
                    and (not alert_rule.filter or run_id in matching[alert_rule.filter])
                ]
                if before or about:
                    self._decide(stored_rule, alert_rule, about, before, by_run.get(run_id, []))

    def _matching(self, run_ids: set[int], now_ms: int) -> Mapping[str, set[int]]:
        texts = {alert_rule.filter for _, alert_rule in self._rules.values() if alert_rule.filter}
        return {
            text: set(self._store.runs.matching(run_ids, Filter(terms=parse(text)), now_ms)) for text in texts
        }

    def _decide(
        self,
        stored_rule: StoredRule,
        alert_rule: AlertRule,
        about: Sequence[WatchedFinding],
        before: Sequence[FindingFiring],
        of_run: Sequence[WatchedFinding],
    ) -> None:
        """Let a rule fire for the findings of a run, or be over."""
        by_id: dict[str, list[WatchedFinding]] = defaultdict(list)
        for finding in about:
            by_id[finding.id].append(finding)
        still_open = {firing.id: firing for firing in before if firing.ended_ms is None}
        for finding_id, firing in still_open.items():
            if not open_of(by_id.get(finding_id, ())):
                self._end(
                    stored_rule,
                    alert_rule,
                    firing,
                    [finding for finding in of_run if finding.id == finding_id],
                )
        for finding_id, findings_of_id in by_id.items():
            if finding_id not in still_open:
                past = [firing for firing in before if firing.id == finding_id]
                self._fire(stored_rule, alert_rule, findings_of_id, past)

    def _fire(
        self,
        stored_rule: StoredRule,
        alert_rule: AlertRule,
        of_id: Sequence[WatchedFinding],
        past: Sequence[FindingFiring],
    ) -> None:
        """Let a rule fire if a finding has lasted for long enough; one that is over already, for a moment."""
        due = [
            finding
            for finding in of_id
            if finding.lasted_ms >= alert_rule.for_ms
            and not self._is_done(stored_rule, alert_rule, finding, past)
        ]
        if not due:
            return
        finding = self._findings.with_advice(next(iter(open_of(due)), due[0]))
        lane = self._findings.lane(finding)
        if lane is None:
            return
        time_ms = max(finding.from_ms + alert_rule.for_ms, finding.opened_ms)
        series = EvaluatedSeries(finding.run_id, lane.lane_id, lane.host, finding.id)
        self._on_transition(
            stored_rule,
            alert_rule,
            Transition(alert_rule, series, True, time_ms, math.nan, _text_with_advice(finding)),
            lane,
        )
        if finding.to_ms is not None:
            self._store.alerts.firings.end(alert_rule.id, lane.lane_id, finding.id, self._clock())

    def _is_done(
        self,
        stored_rule: StoredRule,
        alert_rule: AlertRule,
        finding: WatchedFinding,
        past: Sequence[FindingFiring],
    ) -> bool:
        """Return whether a rule does not fire for a finding any more: it has fired, or it is too late."""
        if finding.up_to_ms < self._clock() - LATE_MS:
            return True
        if past and max(finding.opened_ms, finding.from_ms + alert_rule.for_ms) < (
            past[-1].fired_ms + alert_rule.cooldown_ms
        ):
            return True
        if finding.to_ms is None:
            return False
        has_fired = any(firing.ended_ms is None or firing.ended_ms >= finding.from_ms for firing in past)
        return has_fired or finding.to_ms < max(stored_rule.changed_ms, self._clock() - LATE_MS)

    def _end(
        self,
        stored_rule: StoredRule,
        alert_rule: AlertRule,
        firing: FindingFiring,
        of_id: Sequence[WatchedFinding],
    ) -> None:
        """End what fires. Nobody is notified if the run has ended, or is gone."""
        if not of_id or of_id[0].run_has_ended:
            self._store.alerts.firings.end(alert_rule.id, firing.lane_id, firing.id, self._clock())
            return
        finding = of_id[0]
        series = EvaluatedSeries(firing.run_id, firing.lane_id, firing.host, firing.id)
        lane = self._findings.lane(finding)
        if lane is not None:
            over = Transition(alert_rule, series, False, self._clock(), math.nan, finding.text)
            self._on_transition(stored_rule, alert_rule, over, lane)


def is_about(alert_rule: AlertRule, finding: WatchedFinding) -> bool:
    """Return whether a rule is about a finding, whoever owns its run and whatever its filter says."""
    condition = alert_rule.condition
    ids = condition.findings
    return (
        (not ids or finding.id in ids)
        and not (alert_rule.everywhere and finding.id in OF_TRAINING)
        and FINDING_SEVERITIES.index(finding.severity) >= FINDING_SEVERITIES.index(condition.finding_severity)
        and (not alert_rule.projects or finding.project in alert_rule.projects)
        and (not alert_rule.hosts or _is_on(finding.hosts, alert_rule.hosts))
    )


def _is_on(hosts: Iterable[str], names: Sequence[str]) -> bool:
    return any(fnmatchcase(host, name) for host in hosts for name in names)


def _text_with_advice(finding: WatchedFinding) -> str:
    return f"{finding.text} What to do: {finding.advice}" if finding.advice else finding.text


class FindingEvents:
    """Raises the events that findings opened or closed, in the transaction that keeps them.

    Nobody is notified of what arrives late, such as when runs are imported.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._store = metadata_store
        self._clock = clock

    def note(self, changes: Sequence[FindingChange]) -> None:
        """Raise the events of changes; those that automations are not about cost one query."""
        since_ms = self._clock() - LATE_MS
        recent = [change for change in changes if change.up_to_ms >= since_ms]
        if recent:
            self._store.write(lambda connection: raise_findings(connection, recent))
