"""What the bell of the page shows."""

from __future__ import annotations

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.server.alerts.inbox import MAX_ITEMS, Inbox, InboxItem
from runvitals.server.alerts.storage.alert_settings import AlertSubject
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.outbox import Notification
from tests.server.alerts.conftest import Team


def items(team: Team, name: str = "bob", teams: tuple[int, ...] = ()) -> list[InboxItem]:
    team.told()
    team.directory.rights_changed()
    return Inbox(team.store, team.directory).items(getattr(team, name).id, teams, team.clock())


def titles(team: Team, name: str = "bob", teams: tuple[int, ...] = ()) -> list[str]:
    return [item.title for item in items(team, name, teams)]


def test_it_has_what_happened_to_own_runs_whatever_is_mailed(team: Team) -> None:
    team.end(team.run("otter-1"), "finished")
    team.wait(1000)
    crashed = team.run("otter-2")
    team.alert(crashed, "NaN <b>", "error")
    team.told()
    team.wait(1000)
    team.end(crashed)
    team.end(team.run("of-ada", team.ada))
    assert titles(team) == ["otter-2 crashed", "otter-2: NaN <b>", "otter-1 finished"]
    crash, alert, finished = items(team)
    assert (crash.level, alert.level, finished.level) == ("error", "error", "info")
    assert (crash.path, crash.place) == ("/vision/digits/runs/otter-2", "vision/digits")
    assert alert.text == "about NaN <b>"
    team.wait(31 * DAY_MS)
    assert titles(team) == []


def test_it_has_nothing_that_was_muted_or_may_not_be_read(team: Team) -> None:
    for uid in ("otter-1", "otter-2"):
        team.end(team.run(uid))
    muted = team.run("otter-1").run_id
    team.store.alerts.settings.except_from(team.bob.id, AlertSubject("run", muted), "off")
    assert titles(team) == ["otter-2 crashed"]
    team.store.accounts.members.remove("vision", "bob", CLI, team.clock())
    assert titles(team) == []


def test_a_run_that_is_wanted_is_shown_in_a_muted_project(team: Team) -> None:
    run = team.run("otter-1")
    team.end(run)
    place = team.store.runs.place(run.run_id)
    assert place is not None
    settings = team.store.alerts.settings
    settings.except_from(team.bob.id, AlertSubject("project", place.project_id), "off")
    assert titles(team) == []
    settings.except_from(team.bob.id, AlertSubject("run", run.run_id), "all")
    assert titles(team) == ["otter-1 crashed"]


def test_it_has_who_waits_for_an_answer_until_there_is_one(team: Team) -> None:
    accounts, carla = team.store.accounts, team._user("carla")
    request = accounts.join_requests.create("vision", carla.id, "please", CLI, team.clock())
    [asked] = items(team, "ada", (team.team.id,))
    assert (asked.title, asked.text, asked.needs_decision) == ("carla asks to join vision", "please", True)
    assert titles(team, "ada") == titles(team, "bob") == []
    accounts.join_requests.reject(request.id, CLI, team.clock())
    assert titles(team, "ada", (team.team.id,)) == []


def test_other_notifications_are_there_too(team: Team) -> None:
    text = "Budget of vision\nis used up"
    about = {"path": "/-/billing/budget"}
    target = f"user:{team.bob.id}"
    for kind in ("usage.budget", "run.crashed"):
        new = Notification(kind, kind, target, "budget:1", text, about, team.clock())
        team.store.write(lambda connection, new=new: team.store.alerts.outbox.add(connection, new))
    [item] = items(team)
    assert (item.title, item.text, item.path) == ("Budget of vision", "is used up", "/-/billing/budget")


def test_it_is_bounded(team: Team) -> None:
    for number in range(MAX_ITEMS + 5):
        team.end(team.run(f"run-{number}"))
    assert len(items(team)) == MAX_ITEMS


def test_what_was_seen_never_becomes_unseen(team: Team) -> None:
    inbox = team.store.alerts.inbox
    assert inbox.seen_ms(team.bob.id) == 0
    for seen_ms in (5, HOUR_MS, 7):
        inbox.see(team.bob.id, seen_ms)
    assert inbox.seen_ms(team.bob.id) == HOUR_MS
    assert inbox.seen_ms(team.ada.id) == 0
