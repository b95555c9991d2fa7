"""Rules on what ingest stores, from the queue to the outbox."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runvitals.model.batch_format import GAP
from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.server.alerts.automations import as_json, automation_of
from runvitals.server.alerts.delivery.automation_thread import AutomationThread
from runvitals.server.alerts.ready_rules import READY_RULES
from runvitals.server.alerts.rule_notices import MAX_PER_MINUTE, RuleNotices
from runvitals.server.alerts.rule_watch import RuleWatch
from runvitals.server.alerts.rules import rule
from runvitals.server.alerts.sample_queue import SampleQueue
from runvitals.server.alerts.storage.alert_settings import AlertSubject
from runvitals.server.alerts.storage.firings import Firing
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterHeartbeat
from runvitals.server.usage.storage.alerts import UsageAlert
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from tests.server.alerts.conftest import Team
from tests.server.mail.conftest import T0

IDLE = {
    "name": "idle",
    "for": 60,
    "condition": {"kind": "threshold", "metric": "gpu.*.gpu", "operator": "<", "value": 5, "clear": 10},
    "tell": ["author"],
}
TEMPERATURE = {"kind": "threshold", "metric": "gpu.*.temp", "operator": "<", "value": 5}


class Watch:
    """A server's rules, and the samples it stores."""

    def __init__(self, team: Team, samples: SqliteChunks) -> None:
        self.team = team
        self.samples = samples
        self.store = team.store
        self._seq = 0
        self.start()

    def start(self) -> None:
        """Start anew, as a server does."""
        notices = RuleNotices(self.store, self.team.directory, self.team.clock)
        self.watch = RuleWatch(
            self.store, self.samples, notices.note, self.team.clock, watches_all=notices.watches_all
        )
        self.watch.queue.is_used = True

    def add_rule(self, **definition: Any) -> int:
        definition = {**IDLE, **definition}
        return self.store.alerts.rules.create(self.team.team.id, definition, True, CLI, self.team.clock()).id

    def send(self, writer: RegisteredWriter, evaluate: bool = True, **values: float) -> None:
        """Store a sample of now. `gpu_0_gpu` is the key `gpu.0.gpu`."""
        keys = [name.replace("_", ".") for name in values]
        ids = self.store.metrics.ids(keys)
        metrics = tuple(ids[key] for key in keys)
        self._seq += 1
        t = np.array([self.team.clock()], np.int64)
        row = np.array([list(values.values())], np.float64)
        batch = SampleBatch(writer.lane_id, writer.writer_id, self._seq, metrics, t, row)
        self.samples.append([batch])
        self.watch.queue.add([batch])
        if evaluate:
            self.watch.evaluate()

    def every_second(self, writer: RegisteredWriter, seconds: int, **values: float) -> None:
        for _ in range(seconds):
            self.team.wait(1000)
            self.send(writer, **values)

    def pass_time(self, ms: int) -> None:
        """Let time pass without samples."""
        self.team.wait(ms)
        self.watch.evaluate()

    def firings(self) -> list[Firing]:
        return self.store.alerts.firings.of_entity(self.team.team.id, 100)


@pytest.fixture
def watch(team: Team, tmp_path: Path) -> Iterator[Watch]:
    with SqliteChunks(str(tmp_path / "store")) as samples:
        yield Watch(team, samples)


def test_an_idle_gpu(watch: Watch) -> None:
    watch.add_rule()
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 70, gpu_0_gpu=50, gpu_1_gpu=1)
    [firing] = watch.firings()
    assert (firing.key, firing.host, firing.value, firing.ended_ms) == ("gpu.1.gpu", "node1", 1.0, None)
    [notifications] = watch.team.told()
    assert notifications.target == f"user:{watch.team.bob.id}"
    assert notifications.text == (
        "[vision/digits] otter-1: idle\n\ngpu.1.gpu on node1 is 1, below 5 for 1 min\n\n"
        "You get this because the rule names you as a receiver."
    )
    [event] = watch.store.events.of_run(writer.run_id)
    assert (event.name, event.level, event.data["key"]) == ("rule", "warning", "gpu.1.gpu")
    watch.every_second(writer, 1, gpu_0_gpu=50, gpu_1_gpu=9)
    assert watch.firings()[0].ended_ms is None
    watch.every_second(writer, 1, gpu_0_gpu=50, gpu_1_gpu=30)
    assert watch.firings()[0].ended_ms == watch.team.clock()
    [over] = watch.team.told()
    assert over.text.startswith("[vision/digits] otter-1: idle is over\n\ngpu.1.gpu on node1 is 30")


def test_a_new_rule_sees_what_is_sent_right_after_it(watch: Watch) -> None:
    writer = watch.team.run("otter-1")
    watch.send(writer, gpu_0_gpu=1)  # before there is any rule
    watch.add_rule(**{"for": 0})
    watch.send(writer, evaluate=False, gpu_0_gpu=2)
    watch.send(writer, gpu_0_gpu=2)
    assert [firing.value for firing in watch.firings()] == [2.0]
    watch.add_rule(name="hot", condition=TEMPERATURE, **{"for": 0})
    watch.send(writer, gpu_0_gpu=3, gpu_0_temp=4)
    watch.pass_time(5_000)
    assert {firing.key for firing in watch.firings()} == {"gpu.0.gpu", "gpu.0.temp"}


def test_samples_are_kept_for_a_rule_that_is_being_saved(watch: Watch) -> None:
    watch.watch.evaluate()  # there is no rule
    writer = watch.team.run("otter-1")
    watch.watch.queue.is_used = False
    watch.start()
    watch.watch.evaluate()
    assert watch.watch.queue.is_used
    watch.add_rule(**{"for": 0})
    watch.send(writer, gpu_0_gpu=2)
    assert len(watch.firings()) == 1


def test_who_wants_findings_gets_them_without_a_receiver_in_the_rule(watch: Watch) -> None:
    watch.team.choose(watch.team.bob, events={"findings": {"email": True}})
    watch.add_rule(tell=[], **{"for": 0})
    watch.send(watch.team.run("otter-1"), gpu_0_gpu=1)
    assert watch.team.titles() == [(f"user:{watch.team.bob.id}", "[vision/digits] otter-1: idle")]


def test_a_rule_that_names_nobody_goes_where_its_severity_leads(watch: Watch) -> None:
    team = watch.team
    routes = {"error": ["author", "slack:3"], "info": ["webhook:1"]}
    watch.store.alerts.settings.put_team(team.team.id, {"routes": routes}, CLI, T0)
    watch.add_rule(tell=[], severity="error", **{"for": 0})
    watch.send(team.run("otter-1"), gpu_0_gpu=1)
    assert sorted(notification.target for notification in team.told()) == ["slack:3", f"user:{team.bob.id}"]
    assert watch.firings()[0].told == "author, slack:3"


def test_a_rule_of_administrators_looks_at_the_runs_of_all_teams(watch: Watch) -> None:
    team, accounts = watch.team, watch.store.accounts
    accounts.users.update(team.ada.id, CLI, T0, org_role="admin")
    operations = accounts.teams.create("operations", CLI, T0, administrator=team.ada.id)
    routes = {"error": ["author", "slack:3"]}
    watch.store.alerts.settings.put_team(operations.id, {"routes": routes}, CLI, T0)
    rules, now_ms = watch.store.alerts.rules, team.clock()
    everywhere = {**IDLE, "for": 0, "severity": "error", "tell": [], "everywhere": True}
    by = Actor("user", "ada", team.ada.id)
    rules.create(operations.id, everywhere, True, by, now_ms)
    rules.create(operations.id, {**everywhere, "name": "not of an administrator"}, True, CLI, now_ms)
    rules.create(operations.id, {**IDLE, "for": 0, "name": "of its own runs"}, True, by, now_ms)
    team.directory.rights_changed()
    watch.send(team.run("otter-1"), gpu_0_gpu=1)
    logged = WriterRegistration("otter-1", "train.node1.b", "digits", "train", sender=Sender(team.team.id))
    watch.send(watch.store.writers.join([logged], team.clock())[0], gpu_1_gpu=1)
    [firing] = watch.store.alerts.firings.of_entity(operations.id, 100)
    assert firing.told == "author, slack:3"
    sent = team.told()
    assert sorted(notification.target for notification in sent) == ["slack:3", f"user:{team.bob.id}"]
    [to_slack] = [notification for notification in sent if notification.target == "slack:3"]
    assert (to_slack.team_id, to_slack.text.partition("\n")[0]) == (
        operations.id,
        "[vision/digits] otter-1: idle",
    )
    assert watch.firings() == []
    # It rests when its creator administers the organisation no more.
    accounts.users.create("olga", CLI, T0, org_role="admin", address="olga@example.org", verified=True)
    accounts.users.update(team.ada.id, CLI, T0, org_role="member")
    team.directory.rights_changed()
    team.wait(HOUR_MS)
    watch.send(team.run("otter-2"), gpu_0_gpu=1)
    assert len(watch.store.alerts.firings.of_entity(operations.id, 100)) == 1


def test_quiet_hours_hold_what_rules_send(watch: Watch) -> None:
    quiet = {"on": True, "start": 0, "end": 23 * 60, "errors_pass": True}
    watch.team.choose(watch.team.bob, quiet=quiet, digest="hourly")
    watch.add_rule(**{"for": 0}, severity="warning")
    watch.add_rule(name="very idle", **{"for": 0}, severity="error")
    watch.send(watch.team.run("otter-1"), gpu_0_gpu=1)
    assert [title for _, title in watch.team.titles()] == ["[vision/digits] otter-1: very idle"]


@pytest.mark.parametrize(
    ("scope", "fires"),
    [
        ({"projects": ["digits"]}, True),
        ({"projects": ["other"]}, False),
        ({"hosts": ["node*"]}, True),
        ({"hosts": ["gpu*"]}, False),
        ({"filter": "tag:hero"}, True),
        ({"filter": "-tag:hero"}, False),
    ],
)
def test_the_scope_of_a_rule(watch: Watch, scope: dict[str, Any], fires: bool) -> None:
    watch.add_rule(**scope, **{"for": 0})
    writer = watch.team.run("otter-1")
    watch.store.runs.tag([writer.run_id], watch.team.clock(), add=["hero"])
    watch.send(writer, gpu_0_gpu=1)
    assert bool(watch.firings()) == fires


def test_a_muted_rule_fires_without_telling(watch: Watch) -> None:
    number = watch.add_rule(**{"for": 0})
    until = watch.team.clock() + HOUR_MS
    watch.store.alerts.rules.update(watch.team.team.id, number, CLI, 1, muted_until_ms=until)
    watch.send(watch.team.run("otter-1"), gpu_0_gpu=1)
    assert [firing.told for firing in watch.firings()] == ["muted"]
    assert watch.team.told() == []


def test_nobody_is_told_during_maintenance(watch: Watch) -> None:
    now_ms = watch.team.clock()
    watch.add_rule(maintenance=[{"from_ms": now_ms, "to_ms": now_ms + 1}], **{"for": 0})
    watch.send(watch.team.run("otter-1"), gpu_0_gpu=1)
    assert [firing.told for firing in watch.firings()] == ["maintenance"]


@pytest.mark.parametrize("is_saved", [True, False])
def test_a_restart_in_the_middle(watch: Watch, is_saved: bool) -> None:
    watch.add_rule()
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 50, gpu_0_gpu=1)
    if is_saved:
        watch.watch.close()
    watch.start()
    watch.every_second(writer, 15, gpu_0_gpu=1)
    assert len(watch.firings()) == (1 if is_saved else 0) or not is_saved
    watch.watch.close()
    watch.start()
    watch.every_second(writer, 80, gpu_0_gpu=1)
    assert len(watch.firings()) == 1
    watch.every_second(writer, 1, gpu_0_gpu=99)
    assert watch.firings()[0].ended_ms is not None


def test_windows_are_filled_from_what_is_stored(watch: Watch) -> None:
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 60, gpu_0_gpu=1)
    condition = {**IDLE["condition"], "statistic": "mean", "window": 60}  # type: ignore[dict-item]
    watch.add_rule(condition=condition, **{"for": 0})
    watch.start()
    watch.every_second(writer, 1, gpu_0_gpu=1)
    assert len(watch.firings()) == 1


def test_the_rate_of_a_counter(watch: Watch) -> None:
    condition = {"kind": "threshold", "metric": "gpu.*.throttle.*Percent", "value": 40}
    watch.add_rule(condition=condition, **{"for": 0})
    writer = watch.team.run("otter-1")
    for total in (0.0, 0.1, 0.6):
        watch.every_second(writer, 1, gpu_0_throttle_swThermalSeconds=total)
    [firing] = watch.firings()
    assert (firing.key, firing.value) == ("gpu.0.throttle.swThermalPercent", pytest.approx(50))


def test_a_straggler(watch: Watch) -> None:
    condition = {"kind": "spread", "metric": "gpu.*.powerWatts", "window": 10, "by": 15, "direction": "down"}
    watch.add_rule(condition=condition, **{"for": 20})
    writer = watch.team.run("otter-1")
    power = {f"gpu_{number}_powerWatts": 400.0 for number in range(4)}
    watch.every_second(writer, 40, **{**power, "gpu_2_powerWatts": 300.0})
    [firing] = watch.firings()
    assert (firing.key, firing.value) == ("gpu.2.powerWatts", -25.0)


def test_a_silent_host(watch: Watch) -> None:
    watch.add_rule(condition={"kind": "silence", "of": "host"}, **{"for": 60})
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 3, gpu_0_gpu=50)
    watch.pass_time(50_000)
    assert watch.firings() == []
    watch.pass_time(11_000)
    assert [(firing.host, firing.value, firing.ended_ms) for firing in watch.firings()] == [
        ("node1", None, None)
    ]
    watch.pass_time(11_000)
    assert len(watch.firings()) == 1
    watch.team.wait(11_000)
    watch.send(writer, gpu_0_gpu=50)
    assert watch.firings()[0].ended_ms is not None


def test_a_host_that_ended_before_the_others_is_not_silent(watch: Watch) -> None:
    watch.add_rule(condition={"kind": "silence", "of": "host"}, **{"for": "5m"})
    watch.add_rule(name="gpu", condition={"kind": "silence", "metric": "gpu.*.gpu"}, **{"for": "5m"})
    first, second = watch.team.run("otter-1"), watch.team.run("otter-1", writer="monitor.node2.a")
    watch.send(first, gpu_0_gpu=50)
    watch.send(second, gpu_0_gpu=50)
    watch.team.end(first, "finished")
    for _ in range(20):
        watch.team.wait(MINUTE_MS // 2)
        watch.send(second, gpu_0_gpu=50)
    assert watch.firings() == []
    for _ in range(12):
        watch.pass_time(MINUTE_MS // 2)
    assert {(firing.rule, firing.host) for firing in watch.firings()} == {("gpu", "node2"), ("idle", "node2")}


def test_a_host_that_sends_to_another_server_is_not_silent(watch: Watch) -> None:
    watch.add_rule(condition={"kind": "silence", "of": "host"}, **{"for": "5m"})
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 2, gpu_0_gpu=50)
    for _ in range(30):
        watch.pass_time(MINUTE_MS // 2)
        now_ms = watch.team.clock()
        watch.store.writers.record_heartbeats([WriterHeartbeat(writer.writer_id, now_ms, now_ms)])
    assert watch.firings() == []
    for _ in range(13):
        watch.pass_time(MINUTE_MS // 2)
    assert len(watch.firings()) == 1


def test_two_servers_that_find_the_same_host_silent_tell_of_it_once(watch: Watch) -> None:
    watch.add_rule(condition={"kind": "silence", "of": "host"}, **{"for": 60})
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 3, gpu_0_gpu=50)
    first = watch.watch
    watch.start()  # the other one never heard the host itself
    for _ in range(8):
        watch.pass_time(10_000)
        first.evaluate()
    assert len(watch.firings()) == 1
    assert len(watch.team.told()) == 1
    watch.send(writer, gpu_0_gpu=50)
    watch.store.writers.record_heartbeats(
        [WriterHeartbeat(writer.writer_id, watch.team.clock(), watch.team.clock())]
    )
    for _ in range(2):
        watch.pass_time(11_000)
        first.evaluate()
    assert watch.firings()[0].ended_ms is not None
    assert len(watch.team.told()) == 1


def test_a_metric_that_another_server_gets_is_not_silent_here(watch: Watch) -> None:
    watch.add_rule(condition={"kind": "silence", "metric": "gpu.*.gpu"}, **{"for": 60})
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 3, gpu_0_gpu=50)
    for _ in range(8):
        now_ms = watch.team.clock()
        watch.store.writers.record_heartbeats([WriterHeartbeat(writer.writer_id, now_ms, now_ms)])
        watch.pass_time(15_000)
    assert watch.firings() == []


def test_a_server_that_was_killed_tells_neither_twice_nor_forgets_the_end(watch: Watch) -> None:
    watch.add_rule(**{"for": 0})
    writer = watch.team.run("otter-1")
    watch.every_second(writer, 2, gpu_0_gpu=1)
    assert len(watch.team.told()) == 1
    watch.store.alerts.rules.save_states([], [writer.lane_id])  # killed before it kept the states
    watch.start()
    watch.every_second(writer, 3, gpu_0_gpu=1)
    assert len(watch.firings()) == 1
    assert watch.team.told() == []
    watch.every_second(writer, 7, gpu_0_gpu=50)
    assert watch.firings()[0].ended_ms is not None
    assert len(watch.team.told()) == 1


def test_a_rule_that_fires_for_many_devices_tells_of_few(watch: Watch) -> None:
    watch.add_rule(**{"for": 0})
    count = MAX_PER_MINUTE + 5
    values = {f"gpu_{number}_gpu": 1.0 for number in range(count)}
    watch.every_second(watch.team.run("otter-1"), 1, **values)
    notifications = watch.team.told()
    assert len(notifications) == MAX_PER_MINUTE
    assert ["What follows" in notification.text for notification in notifications] == [False] * (
        MAX_PER_MINUTE - 1
    ) + [True]
    assert [firing.told for firing in watch.firings()].count("too many in a minute") == 5


def test_two_servers_keep_the_states_of_both(watch: Watch) -> None:
    watch.add_rule(**{"for": 0})
    watch.every_second(watch.team.run("otter-1"), 6, gpu_0_gpu=1)
    first = watch.watch
    watch.store.alerts.rules.save_states([], ())
    watch.start()
    watch.every_second(watch.team.run("otter-2"), 6, gpu_0_gpu=1)
    watch.watch.close()
    first.close()
    assert len({state.run_id for state in watch.store.alerts.rules.states()}) == 2


def test_a_run_that_is_busy_without_a_step(watch: Watch) -> None:
    condition = {"kind": "silence", "of": "steps", "busy_metric": "gpu.*.gpu", "busy_value": 94}
    watch.add_rule(condition=condition, **{"for": 60})
    monitor = watch.team.run("otter-1")
    training = watch.team.run("otter-1", writer="train.node1.1")
    watch.every_second(training, 1, loss=0.5)
    watch.every_second(monitor, 80, gpu_0_gpu=50)
    assert watch.firings() == []
    watch.every_second(monitor, 15, gpu_0_gpu=100)
    assert len(watch.firings()) == 1
    watch.every_second(training, 11, loss=0.4)
    assert watch.firings()[0].ended_ms is not None


def test_a_rank_that_logs_nothing_while_others_do(watch: Watch) -> None:
    watch.add_rule(condition={"kind": "silence", "of": "rank"}, **{"for": 60})
    watch.team.run("otter-1")  # the monitor
    ranks = [watch.team.run("otter-1", writer=f"train.node1.{rank}", rank=rank) for rank in range(3)]
    for _ in range(30):
        for writer in ranks:
            watch.send(writer, loss=0.5)
        watch.team.wait(1000)
    watch.team.end(ranks[2], "finished")
    for _ in range(80):
        watch.team.wait(1000)
        watch.send(ranks[0], loss=0.5)
    [firing] = watch.firings()
    assert (firing.key, firing.host, firing.ended_ms) == ("rank 1", "node1", None)
    [notifications] = watch.team.told()
    assert "rank 1 logged nothing, unlike others on node1 for 1 min" in notifications.text
    for _ in range(8):
        watch.pass_time(11_000)  # nobody logs any more: that is no silence of a rank
    assert watch.firings()[0].ended_ms is not None
    assert len(watch.firings()) == 1


def test_a_loss_that_is_not_a_number(watch: Watch) -> None:
    watch.add_rule(condition={"kind": "not_finite", "metric": "*loss*"}, **{"for": 0})
    writer = watch.team.run("otter-1", writer="train.node1.1")
    for value in (0.5, float("nan")):
        watch.every_second(writer, 1, train_loss=value)
    assert [firing.key for firing in watch.firings()] == ["train.loss"]


@pytest.mark.parametrize(
    ("writer", "value", "fires"),
    [
        ("train.node1.1", float("nan"), True),
        ("train.node1.1", GAP, False),
        ("monitor.node1.1", float("nan"), False),
        ("monitor.node1.1", float("inf"), True),
    ],
)
def test_a_row_without_a_value_is_no_loss_that_is_not_a_number(
    watch: Watch, writer: str, value: float, fires: bool
) -> None:
    watch.add_rule(condition={"kind": "not_finite", "metric": "*loss*"}, **{"for": 0})
    watch.every_second(watch.team.run("otter-1", writer=writer), 1, train_loss=value, step=1.0)
    assert bool(watch.firings()) is fires


def test_a_rule_tells_a_channel_of_the_team_only_what_the_team_may_read(watch: Watch) -> None:
    team = watch.team
    watch.add_rule(**{"for": 0}, tell=["slack:3", "members"])
    watch.every_second(team.run("otter-1"), 1, gpu_0_gpu=1)
    both = {f"user:{team.ada.id}", f"user:{team.bob.id}"}
    assert {target for target, _ in team.titles()} == {"slack:3", *both}
    [project] = team.store.accounts.owned_projects.ids_of(team.team.id)
    by = Actor("user", "bob", team.bob.id)
    team.store.accounts.owned_projects.update(project, by, T0, visibility="restricted")
    team.directory.rights_changed()
    watch.every_second(team.run("otter-2"), 6, gpu_0_gpu=1)
    assert {target for target, _ in team.titles()} == {f"user:{team.bob.id}"}
    watch.store.alerts.settings.except_from(team.bob.id, AlertSubject("project", project), "off")
    watch.every_second(team.run("otter-3"), 6, gpu_0_gpu=1)
    assert team.titles() == []
    assert len(watch.firings()) == 3


def test_a_change_is_noticed_when_the_clock_goes_back(watch: Watch) -> None:
    rules, team = watch.store.alerts.rules, watch.team
    watch.add_rule(name="first")
    team.clock.now_ms -= HOUR_MS
    second = watch.add_rule(name="second")
    before = rules.version()
    rules.update(team.team.id, second, CLI, team.clock(), enabled=False)
    assert rules.version() != before


def test_automations_are_told_of_findings(watch: Watch) -> None:
    team = watch.team
    form = as_json(automation_of({"event": {"kind": "finding"}, "actions": [{"kind": "stop"}]}))
    by = Actor("user", "ada", team.ada.id)
    watch.store.alerts.automations.create(team.team.id, "findings", True, form, by, T0)
    watch.add_rule(**{"for": 0}, tell=[])
    writer = team.run("otter-1")
    watch.every_second(writer, 1, gpu_0_gpu=1)
    AutomationThread(watch.store, team.directory, team.clock).react()
    [notifications] = team.told()
    assert (notifications.target, notifications.kind) == (f"stop:{writer.run_id}", "finding")


def test_automations_are_told_of_a_silent_host(watch: Watch) -> None:
    team = watch.team
    event = {"kind": "device.silent", "host": "^node"}
    actions = [{"kind": "tag", "tag": "silent"}, {"kind": "slack", "destination": 3}]
    form = as_json(automation_of({"event": event, "actions": actions}))
    by = Actor("user", "ada", team.ada.id)
    watch.store.alerts.automations.create(team.team.id, "silent", True, form, by, T0)
    watch.add_rule(condition={"kind": "silence", "of": "host"}, tell=[], **{"for": 60})
    watch.send(team.run("otter-1"), gpu_0_gpu=1)
    watch.pass_time(70_000)
    AutomationThread(watch.store, team.directory, team.clock).react()
    assert sorted(team.titles())[0][1] == "[vision/digits] otter-1: nothing arrives of node1"


def test_automations_are_told_when_a_team_has_used_its_plan(watch: Watch) -> None:
    team = watch.team
    event = {"kind": "usage.threshold", "percent": 85}
    form = as_json(automation_of({"event": event, "actions": [{"kind": "slack", "destination": 3}]}))
    by = Actor("user", "ada", team.ada.id)
    watch.store.alerts.automations.create(team.team.id, "plan", True, form, by, T0)
    passed = [UsageAlert("2026-11", team.team.id, "storage", "percent", 85, 90.0, 100.0)]
    for _ in range(2):
        watch.store.usage.alerts.send(passed, [], team.clock())
    AutomationThread(watch.store, team.directory, team.clock).react()
    [notifications] = team.told()
    assert notifications.text.startswith("[vision] the plan is used to 85 % (storage)")


def test_what_fires_is_over_when_the_run_has_ended(watch: Watch) -> None:
    watch.add_rule(**{"for": 0})
    writer = watch.team.run("otter-1")
    watch.send(writer, gpu_0_gpu=1)
    assert len(watch.team.told()) == 1
    watch.team.end(writer, "finished")
    watch.pass_time(MINUTE_MS)
    assert watch.firings()[0].ended_ms is not None
    assert watch.team.told() == []


def test_samples_that_arrive_late_are_left_out(watch: Watch) -> None:
    watch.add_rule(**{"for": 0})
    writer = watch.team.run("otter-1")
    watch.send(writer, evaluate=False, gpu_0_gpu=1)
    watch.pass_time(11 * MINUTE_MS)
    assert watch.firings() == []


def test_a_rule_that_is_switched_off_is_over(watch: Watch) -> None:
    number = watch.add_rule(**{"for": 0})
    writer = watch.team.run("otter-1")
    watch.send(writer, gpu_0_gpu=1)
    watch.store.alerts.rules.update(watch.team.team.id, number, CLI, watch.team.clock(), enabled=False)
    assert watch.firings()[0].ended_ms is not None
    watch.team.wait(10_000)
    watch.send(writer, gpu_0_gpu=1)
    assert len(watch.firings()) == 1


@pytest.mark.parametrize("definition", READY_RULES, ids=lambda definition: definition["name"])
def test_ready_rules_are_valid(definition: dict[str, Any]) -> None:
    assert rule(definition).name == definition["name"]


def test_the_queue_is_bounded() -> None:
    queue = SampleQueue(max_values=10)
    queue.is_used = True
    t, values = np.zeros(4, np.int64), np.zeros((4, 1))
    for seq in range(5):
        queue.add([SampleBatch(1, 1, seq, (1,), t, values)])
    assert ([batch.seq for batch in queue.take()], queue.dropped) == ([3, 4], 3)
    assert queue.take() == []
