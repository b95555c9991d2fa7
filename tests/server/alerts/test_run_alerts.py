"""Who is notified what about ends, losses and alerts of runs."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.server.alerts.mute_links import PURPOSE, MuteLink, mute_link
from runvitals.server.alerts.run_alerts import ALERTS_A_MINUTE, LOST_MS, OLD_MS, RunAlerts
from runvitals.server.alerts.settings import QuietHours
from runvitals.server.alerts.storage.alert_settings import AlertSubject
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.events.outbox import Notification
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writers import StoredProcess, WriterHeartbeat
from tests.server.alerts.conftest import Team
from tests.server.mail.conftest import T0

MAIL = {"email": True, "slack": False}
CRASHED = "[vision/digits] otter-1 crashed after 0 s"


def to(team: Team, name: str) -> str:
    return f"user:{getattr(team, name).id}"


def test_the_author_is_told_of_a_crash_once(team: Team) -> None:
    writer = team.run("otter-1")
    team.end(writer, exit_code=None, signal=11)
    team.end(writer, exit_code=None, signal=11)
    assert team.titles() == [(to(team, "bob"), CRASHED)]
    team.end(writer, exit_code=None, signal=11)
    assert team.titles() == []


def test_two_servers_tell_once(team: Team) -> None:
    team.end(team.run("otter-1"))
    other = RunAlerts(team.store, team.directory, team.box, team.clock, lambda: 0.0)
    events = team.store.alerts.events.in_state("new")
    team.alerts._decide(events[0])
    other._decide(events[0])
    assert len(team.told()) == 1


@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_by_default_nobody_is_told_of_other_ends(team: Team, state: str) -> None:
    team.end(team.run("otter-1"), state)
    assert team.titles() == []


def test_the_end_is_told_when_all_hosts_have_ended(team: Team) -> None:
    team.choose(team.bob, events={"finished": MAIL})
    first, second = team.run("otter-1"), team.run("otter-1", writer="monitor.node2.b")
    team.end(first, "finished")
    assert team.titles() == []
    team.wait(11_520_000)
    team.end(second, "finished")
    assert team.titles() == [(to(team, "bob"), "[vision/digits] otter-1 finished after 3 h 12 min")]


def test_a_resumed_run_is_told_again(team: Team) -> None:
    team.end(team.run("otter-1"))
    assert len(team.told()) == 1
    team.end(team.run("otter-1", writer="monitor.node1.b"))
    assert len(team.told()) == 1


def test_the_text_of_a_crash(team: Team) -> None:
    writer = team.run("otter-1")
    processes = [
        StoredProcess(writer.run_id, "node2", 7, rank=3, ended_ms=T0 + 5, exit_code=1),
        StoredProcess(writer.run_id, "node1", 8, rank=0, ended_ms=T0 + 9, exit_code=1),
    ]
    team.store.writers.record_processes(processes)
    output = "".join(f"\x1b[31mline {number}\x1b[0m\n" for number in range(30))
    pieces = [output, "10 %\r99 %\nPASSWORD=hunter22 failed\n"]
    lines = [
        ConsoleLine(writer.run_id, writer.writer_id, n, T0 + n, 1, text) for n, text in enumerate(pieces)
    ]
    team.store.console.add(lines)
    team.end(writer, "failed", exit_code=1)
    [notifications] = team.told()
    assert notifications.kind == "run.failed"
    assert notifications.payload["path"] == "/vision/digits/runs/otter-1"
    text = notifications.text
    assert text.startswith("[vision/digits] otter-1 failed after 0 s\n\nState: failed\nWhy: Exit code 1\n")
    assert "Failed first: node2, rank 3" in text
    assert "Last lines of its output:\nline 12\n" in text
    assert "line 29\n99 %\nPASSWORD=*** failed" in text
    assert "hunter22" not in text
    assert "\x1b" not in text
    assert text.endswith("You get this because you are the author of the run.")


def test_the_organisation_keeps_output_out_of_mails(team: Team) -> None:
    writer = team.run("otter-1")
    team.store.console.add([ConsoleLine(writer.run_id, writer.writer_id, 0, T0, 1, "secret plans\n")])
    team.store.accounts.settings.put({"alert_console": False}, CLI, T0)
    team.end(writer)
    [notifications] = team.told()
    assert "secret plans" not in notifications.text


def test_a_lost_run_is_told_after_ten_minutes_and_when_it_is_back(long_enough: Team) -> None:
    team = long_enough
    writer = team.run("otter-1")
    team.wait(LOST_MS)
    assert team.titles() == []
    team.wait(MINUTE_MS)
    lost = "[vision/digits] otter-1 was lost: nothing has been heard of it for 10 minutes"
    assert team.titles() == [(to(team, "bob"), lost)]
    team.wait(MINUTE_MS)
    assert team.titles() == []
    team.store.writers.record_heartbeats([WriterHeartbeat(writer.writer_id, team.clock(), team.clock())])
    assert team.titles() == []
    team.monotonic_s += MINUTE_MS
    assert team.titles() == [(to(team, "bob"), "[vision/digits] otter-1 is back")]
    team.wait(LOST_MS + MINUTE_MS)
    assert team.titles() == [(to(team, "bob"), lost)]


def test_a_server_that_was_down_takes_no_run_for_lost(team: Team) -> None:
    team.run("otter-1")
    team.clock.now_ms += HOUR_MS
    assert team.titles() == []


def test_what_happened_long_ago_is_told_to_nobody(team: Team) -> None:
    team.end(team.run("otter-1"))
    team.wait(OLD_MS + 1)
    assert team.titles() == []


def test_the_same_title_is_told_once_a_minute(team: Team) -> None:
    writer = team.run("otter-1")
    for _ in range(3):
        team.alert(writer, "loss diverged", "error")
    team.alert(writer, "something else")
    titles = team.titles()
    assert [title for _, title in titles] == [
        "[vision/digits] otter-1: loss diverged",
        "[vision/digits] otter-1: something else",
    ]
    team.wait(MINUTE_MS)
    team.alert(writer, "loss diverged")
    assert len(team.told()) == 1


def test_an_alert_says_how_long_its_title_waits(team: Team) -> None:
    writer = team.run("otter-1")
    for waited_ms in (0, 2 * MINUTE_MS, 8 * MINUTE_MS):
        team.wait(waited_ms)
        team.alert(writer, "loss diverged", wait_s=300)
    assert [notification.created_ms - T0 for notification in team.told()] == [10 * MINUTE_MS, 10 * MINUTE_MS]


@pytest.mark.parametrize("wait_s", [float("nan"), float("inf"), -1, 10**400, "soon", None, True, [1]])
def test_an_alert_with_an_invalid_wait_holds_up_no_others(team: Team, wait_s: object) -> None:
    team.alert(team.run("otter-1"), "loss diverged", wait_s=wait_s)
    team.alert(team.run("otter-2"), "disk full")
    assert len(team.told()) == 2


def test_too_many_alerts_become_one(team: Team) -> None:
    writer = team.run("otter-1")
    for number in range(ALERTS_A_MINUTE + 5):
        team.alert(writer, f"step {number}", wait_s=0)
    assert len(team.told()) == ALERTS_A_MINUTE
    team.wait(MINUTE_MS)
    [rest] = team.told()
    assert rest.text.startswith(f"[vision/digits] otter-1: step {ALERTS_A_MINUTE + 4}\n")
    assert "The run sent 4 more alerts within this minute." in rest.text
    assert team.told() == []


def test_alerts_of_a_day_that_arrive_at_once_become_few(team: Team) -> None:
    writer = team.run("otter-1")
    for number in range(ALERTS_A_MINUTE + 5):
        team.wait(2 * MINUTE_MS)
        team.alert(writer, f"step {number}")
    notifications = [notification for notification in team.told() if notification.kind == "run.custom"]
    assert len(notifications) == ALERTS_A_MINUTE + 1
    assert "4 more alerts" in notifications[-1].text


@pytest.mark.parametrize(
    ("section", "marks", "kinds"),
    [
        ("run", {"imported_from": "wandb"}, []),
        ("run", {"notebook": True}, ["failed"]),
        ("machine", {"simulated": "by runvitals"}, ["failed"]),
        ("run", {"name": "otter"}, ["finished", "failed"]),
    ],
)
def test_runs_that_nobody_waits_for(team: Team, section: str, marks: Any, kinds: list[str]) -> None:
    team.choose(team.bob, events={"finished": MAIL, "crashed": MAIL})
    for state in ("finished", "failed"):
        writer = team.run(f"run-{state}")
        update = SectionUpdate(writer.run_id, section, marks, T0, "node1" if section == "machine" else "")
        team.store.sections.merge([update])
        team.end(writer, state)
    assert [notification.kind.removeprefix("run.") for notification in team.told()] == kinds


def test_the_lowest_level_of_alerts(team: Team) -> None:
    team.choose(team.bob, events={"custom": {**MAIL, "min_level": "warning"}})
    writer = team.run("otter-1")
    for level in ("info", "warning", "error"):
        team.alert(writer, level, level)
    assert [title.rpartition(" ")[2] for _, title in team.titles()] == ["warning", "error"]


def test_slack_and_mail_are_told_separately(team: Team) -> None:
    team.choose(team.bob, events={"crashed": {"email": True, "slack": True}})
    team.end(team.run("otter-1"))
    assert [notification.target for notification in team.told()] == [
        f"user:{team.bob.id}",
        f"user-slack:{team.bob.id}",
    ]


def test_a_team_tells_its_members_and_nobody_twice(team: Team) -> None:
    team.store.alerts.settings.put_team(team.team.id, {"events": {"crashed": MAIL}}, CLI, T0)
    team.end(team.run("otter-1"))
    notifications = team.told()
    assert sorted(notification.target for notification in notifications) == sorted(
        [to(team, "ada"), to(team, "bob")]
    )
    [of_ada] = [notification for notification in notifications if notification.target == to(team, "ada")]
    assert of_ada.text.endswith("because the team vision tells its members about its runs.")


def test_a_team_tells_its_slack_channel(team: Team) -> None:
    slack = {"events": {"crashed": {"email": False, "slack": True}}, "slack_destination": 3}
    team.store.alerts.settings.put_team(team.team.id, slack, CLI, T0)
    team.choose(team.bob, events={"crashed": {"email": False}})
    team.end(team.run("otter-1"))
    [notifications] = team.told()
    assert (notifications.target, notifications.team_id) == ("slack:3", team.team.id)
    assert "You get this" not in notifications.text
    assert "mute" not in notifications.payload


def test_of_a_restricted_project_only_its_members_are_told(team: Team) -> None:
    chosen = {"events": {"crashed": {**MAIL, "slack": True}}, "slack_destination": 3}
    team.store.alerts.settings.put_team(team.team.id, chosen, CLI, T0)
    writer = team.run("otter-1", author=team.bob)
    [project] = team.store.accounts.owned_projects.ids_of(team.team.id)
    carol = team._user("carol")
    team.store.accounts.members.add("vision", "carol", "member", CLI, T0)
    by = Actor("user", "bob", team.bob.id)
    team.store.accounts.owned_projects.update(project, by, T0, visibility="restricted")
    team.directory.rights_changed()
    team.end(writer)
    targets = [notification.target for notification in team.told()]
    assert to(team, "bob") in targets
    assert f"user:{carol.id}" not in targets
    assert "slack:3" not in targets  # the whole team reads it


@pytest.mark.parametrize("scope", ["run", "project", "team"])
def test_whoever_muted_it_is_not_told(team: Team, scope: str) -> None:
    writer = team.run("otter-1")
    [project] = team.store.accounts.owned_projects.ids_of(team.team.id)
    number = {"run": writer.run_id, "project": project, "team": team.team.id}[scope]
    team.store.alerts.settings.except_from(team.bob.id, AlertSubject(scope, number), "off")  # type: ignore[arg-type]
    team.end(writer)
    assert team.titles() == []


def test_a_project_of_which_everything_is_told(team: Team) -> None:
    writer = team.run("otter-1")
    [project] = team.store.accounts.owned_projects.ids_of(team.team.id)
    team.store.alerts.settings.except_from(team.bob.id, AlertSubject("project", project), "all")
    team.end(writer, "finished")
    assert len(team.told()) == 1


def test_quiet_hours_end_in_the_users_time_zone(team: Team) -> None:
    by = Actor("user", "bob", team.bob.id)
    team.store.accounts.profiles.put(team.bob.id, {"time_zone": "Asia/Tokyo"}, by, T0)
    quiet = {"on": True, "start": 22 * 60, "end": 7 * 60, "errors_pass": False}
    team.choose(team.bob, quiet=quiet)
    night = datetime(2027, 2, 1, 15, 30, tzinfo=timezone.utc)  # half past midnight in Tokyo
    team.clock.now_ms = int(night.timestamp() * 1000)
    for uid in ("otter-1", "otter-2"):
        team.end(team.run(uid))
    assert team.titles() == []
    team.wait(6 * HOUR_MS + 29 * MINUTE_MS)
    assert team.titles() == []
    team.wait(MINUTE_MS)
    [notifications] = team.told()
    assert notifications.text.startswith("2 alerts of your runs\n")
    assert "otter-1 crashed" in notifications.text
    assert "otter-2 crashed" in notifications.text


def test_quiet_hours_end_later_than_now_when_the_clocks_go_back() -> None:
    zone, quiet = ZoneInfo("Europe/Berlin"), QuietHours(True, 60, 150)
    first, second = (
        datetime(2026, 10, 25, 2, 30, tzinfo=zone, fold=fold).timestamp() * 1000 for fold in (0, 1)
    )
    assert quiet.end_after(int(first) - MINUTE_MS, zone) == first
    assert quiet.end_after(int(second) - MINUTE_MS, zone) == second


def test_errors_pass_quiet_hours(team: Team) -> None:
    quiet = {"on": True, "start": 0, "end": 23 * 60 + 59, "errors_pass": True}
    team.choose(team.bob, quiet=quiet)
    writer = team.run("otter-1")
    team.alert(writer, "calm", "warning")
    team.alert(writer, "fire", "error")
    assert [title.rpartition(" ")[2] for _, title in team.titles()] == ["fire"]


@pytest.mark.parametrize(("digest", "due_ms"), [("hourly", HOUR_MS), ("daily", DAY_MS)])
def test_a_digest(team: Team, digest: str, due_ms: int) -> None:
    team.clock.now_ms = T0 // DAY_MS * DAY_MS + 8 * HOUR_MS
    team.choose(team.bob, digest=digest, daily_at=8 * 60)
    team.end(team.run("otter-1"))
    team.wait(due_ms - 1)
    assert team.titles() == []
    team.wait(1)
    assert team.titles() == [(to(team, "bob"), CRASHED)]


def test_the_link_that_mutes(team: Team) -> None:
    writer = team.run("otter-1")
    team.end(writer)
    [notifications] = team.told()
    key = team.box.derived_key(PURPOSE)
    link = str(notifications.payload["mute"])
    assert mute_link(link, key) == MuteLink(team.bob.id, writer.run_id)
    other = SecretBox({"k": b"x" * 32}).derived_key(PURPOSE)
    for changed in (link.replace(".", "1.", 1), link[:-1], "", "1.2", link + "é"):
        with pytest.raises(ValueError, match="invalid link"):
            mute_link(changed, key)
    with pytest.raises(ValueError, match="invalid link"):
        mute_link(link, other)


def test_a_digest_about_one_run_has_a_link_that_mutes_it(team: Team) -> None:
    team.choose(team.bob, digest="hourly")
    first, second = team.run("otter-1"), team.run("otter-2")
    team.alert(first, "calm", "warning")
    team.end(first)
    assert team.told() == []
    team.wait(HOUR_MS)
    [notifications] = team.told()
    link = mute_link(str(notifications.payload["mute"]), team.box.derived_key(PURPOSE))
    assert link == MuteLink(team.bob.id, first.run_id)
    team.alert(first, "calm", "warning")
    team.alert(second, "calm", "warning")
    assert team.told() == []
    team.wait(HOUR_MS)
    [notifications] = team.told()
    assert "mute" not in notifications.payload


def test_a_digest_leaves_out_runs_that_its_receiver_may_not_read_any_more(team: Team) -> None:
    team.choose(team.bob, digest="hourly")
    team.end(team.run("otter-1"))
    assert team.titles() == []
    team.store.accounts.members.remove("vision", "bob", CLI, T0)
    team.directory.rights_changed()
    team.wait(HOUR_MS)
    assert team.titles() == []
    assert team.store.alerts.events.due(team.clock()) == []


def test_two_servers_send_what_waited_once(team: Team) -> None:
    team.choose(team.bob, digest="hourly")
    team.end(team.run("otter-1"))
    team.told()
    team.wait(HOUR_MS)
    waiting = team.store.alerts.events.due(team.clock())
    team.end(team.run("otter-2"))
    assert len(team.titles()) == 1  # the digest with the first run
    late = Notification("digest:of another server", "run.digest", "user:1", "digest", "late")
    team.store.alerts.events.send_waiting([alert.id for alert in waiting], late)
    assert team.titles() == []


def test_a_private_key_in_the_output_is_not_mailed(team: Team) -> None:
    writer = team.run("otter-1")
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKB\nwNtXyzAbCdEf"
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nout of luck\n"
    team.store.console.add([ConsoleLine(writer.run_id, writer.writer_id, 0, T0, 1, text)])
    team.end(writer)
    [notifications] = team.told()
    assert "out of luck" in notifications.text
    assert "wNtXyzAbCdEf" not in notifications.text
