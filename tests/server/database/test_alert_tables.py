"""Events of runs that wait until somebody is told, and states of rules, in both databases."""

from __future__ import annotations

from runvitals.server.alerts.storage.rules import RuleState
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.outbox import Notification
from runvitals.server.events.run_events import DONE, RunEvent, WaitingAlert
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration

NOW = 1_800_000_000_000
LATE = Notification("digest:1", "run.digest", "user:1", "digest", "late", {}, NOW)


def test_what_waits_is_sent_once_and_as_a_whole(metadata_store: MetadataStore) -> None:
    user = metadata_store.accounts.users.create("ada", CLI, NOW, address="a@example.org", verified=True)
    team = metadata_store.accounts.teams.create("vision", CLI, NOW, administrator=user.id)
    registration = WriterRegistration("a", "monitor.node1.1", "digits", sender=Sender(team.id))
    (joined,) = metadata_store.writers.join([registration], NOW)
    events = metadata_store.alerts.events
    events.add([RunEvent(joined.run_id, 0, "custom", NOW, str(number)) for number in range(2)])
    ids = [event.id for event in events.in_state("new")]
    waiting = [WaitingAlert(user.id, "email", number, NOW, "title", "body") for number in ids]
    events.settle(ids[:1], DONE, (), waiting, {"told_ms": NOW})
    events.settle(ids[1:], DONE)
    assert [event.id for event in events.newest_told(joined.run_id, 20)] == ids[:1]
    first, second = events.due(NOW)
    assert first.run_id == joined.run_id
    events.send_waiting([first.id], None)
    events.send_waiting([first.id, second.id], LATE)  # another server took the first meanwhile
    assert metadata_store.alerts.outbox.length().waiting == 0
    events.send_waiting([second.id], LATE)
    assert (metadata_store.alerts.outbox.length().waiting, events.due(NOW)) == (1, [])

    rules = metadata_store.alerts.rules
    rule = rules.create(team.id, {"name": "idle"}, True, CLI, NOW)
    assert rules.last_heard([joined.lane_id]) == {joined.lane_id: NOW}
    state = RuleState(rule.id, joined.run_id, joined.lane_id, "gpu.0.gpu", "node1", 2, NOW, NOW)
    rules.save_states([state], [joined.lane_id])
    rules.save_states([], [joined.lane_id + 1])
    assert rules.states() == [state]
    rules.save_states([], [joined.lane_id])
    assert rules.states() == []
