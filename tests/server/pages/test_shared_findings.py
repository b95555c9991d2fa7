"""Findings on the pages of a shared server, in a real browser: lost hours, forms, a run that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from runvitals.findings.finding import RULES_VERSION, Evidence, Finding, Findings
from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.findings.kept_result import JudgedRun, continue_result
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterHeartbeat
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_account_pages import at, check, fill, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

TEXTS = {
    "idle": "All 8 GPUs are idle.",
    "input_bound_cpu": "The GPUs wait for the data loader: its 16 workers use all 16 processors.",
    "hang": "The training makes no steps, but the GPUs are busy: <b onclick=alert(1)>rank 3</b> waits.",
    "checkpoint_stalls": "Checkpoints stop the training for 4 min each hour.",
}


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[People]:  # noqa: F811
    """ada administers vision and bob is a member; carla is in the team empty, which has no runs."""
    with serving_people(tmp_path_factory.mktemp("server"), static=static) as people:
        for name in ("ada", "bob", "carla"):
            people.add(name, display_name=name.title())
        for team, member in (("vision", "ada"), ("empty", "carla")):
            number = people.accounts.users.by_name(member).id
            people.accounts.teams.create(team, CLI, people.now_ms, administrator=number)
        people.accounts.members.add("vision", "bob", "member", CLI, people.now_ms)
        people.rights_changed()
        yield people


@pytest.fixture
def page(people: People, browser: Browser) -> Iterator[Browser]:  # noqa: F811
    with at(browser, people.url):
        yield browser


def own_team(people: People, name: str) -> int:
    """A new team that bob administers, with runs that are in no numbers of other tests."""
    bob = people.accounts.users.by_name("bob").id
    return people.accounts.teams.create(name, CLI, people.now_ms, administrator=bob).id


def lose(people: People, uid: str, project: str, team: int | None = None, **hours: float) -> None:
    """A run of bob in a team, usually vision, that lost hours to causes, each on a host of its own."""
    bob = people.accounts.users.by_name("bob").id
    team = people.accounts.teams.by_name("vision").id if team is None else team
    store = people.served.metadata_store
    registration = WriterRegistration(uid, "monitor.node1.1", project, sender=Sender(team, author_id=bob))
    now_ms = people.now_ms
    [writer] = store.writers.join([registration], now_ms - 10 * HOUR_MS)
    store.writers.record_heartbeats([WriterHeartbeat(writer.writer_id, now_ms, now_ms)])
    findings = [
        Finding(
            id=cause,
            severity="warning",
            confidence="certain",
            from_ms=now_ms - 10 * HOUR_MS,
            to_ms=None,
            share=0.5,
            hosts=(f"node{number}",),
            devices=(),
            ranks=(),
            text=TEXTS[cause],
            evidence=(),
            device_hours=lost,
            advice="",
            docs="",
        )
        for number, (cause, lost) in enumerate(hours.items())
    ]
    verdict = findings[0].id if findings else "healthy"
    times = (now_ms, now_ms - 10 * HOUR_MS, now_ms)
    judged = JudgedRun(writer.run_id, RULES_VERSION, *times, False, Findings(verdict, "", findings), 1e6)
    store.findings.put([continue_result(None, judged)[0]])
    people.rights_changed()


def test_a_project_and_its_team_show_what_was_lost_by_cause(page: Browser, people: People) -> None:
    lose(people, "otter-1", "digits", input_bound_cpu=38.4, idle=4.25)
    lose(people, "otter-2", "digits", hang=12.0)
    lose(people, "mole-3", "faces", idle=0.5, checkpoint_stalls=0.02)
    lose(people, "healthy-4", "digits")
    signed_in(page, "bob")
    page.open("/vision/digits/findings")
    shown(page, "55 h lost · 3 runs judged")
    keep_picture(page, "lost-project")
    causes = page.evaluate("[...document.querySelectorAll('.causes .numbers')].map(e => e.innerText)")
    assert causes == ["38 h · 1 run", "12 h · 1 run", "4.3 h · 1 run"]
    page.wait("document.querySelectorAll('.causes > li > button')[1].click() || true")
    shown(page, "The training makes no steps, but the GPUs are busy: <b onclick=alert(1)>rank 3</b> waits.")
    assert (
        page.evaluate("document.querySelector('.causes li li a').pathname")
        == "/vision/digits/runs/otter-2/system"
    )
    assert page.evaluate("location.search") == "?cause=hang"
    keep_picture(page, "lost-runs")
    page.resize(390, 800, dark=True)
    check(page, "/vision/digits/findings?cause=hang")
    keep_picture(page, "lost-phone-dark")
    page.resize(390, 800)
    page.open("/vision?cause=idle")
    shown(page, "lost · 4 runs judged")
    shown(page, "digits · 4.3 h")
    shown(page, "faces · 0.5 h")
    check(page, "/vision?cause=idle")
    digits, faces = page.wait(
        "(r => r.length === 2 && r)([...document.querySelectorAll('ul a.row')].map(e => e.innerText))"
    )
    assert digits.startswith("digits\n55 h · 2 runs")
    assert faces.startswith("faces\n0.52 h · 1 run")
    keep_picture(page, "lost-team-phone")
    page.resize(1280, 900, dark=True)
    keep_picture(page, "lost-team-dark")
    click(page, "ul a.row .title", "digits")
    page.wait("location.pathname === '/vision/digits/findings'")
    page.resize(1280, 900)


def test_a_run_behind_a_cause_opens_at_its_finding(page: Browser, people: People) -> None:
    lose(people, "badger-1", "forest", own_team(people, "woods"), hang=12.0, idle=1.0)
    signed_in(page, "bob")
    page.open("/woods/forest/findings?cause=hang")
    click(page, ".causes li li a", "badger-1")
    shown(page, "What decided: hang")
    assert page.evaluate("location.pathname") == "/woods/forest/runs/badger-1/system"
    from_ms = people.now_ms - 10 * HOUR_MS
    asked = page.evaluate("Object.fromEntries(new URLSearchParams(location.search))")
    assert asked["finding"] == f"hang~{from_ms}"
    assert int(asked["from"]) < from_ms < int(asked["to"])
    keep_picture(page, "lost-run")


def test_billing_readers_see_all_teams_and_only_links_to_what_they_may_read(
    page: Browser, people: People
) -> None:
    lose(people, "heron-1", "birds", own_team(people, "nests"), hang=30.0)
    signed_in(page, "rita")
    page.open("/-/billing/lost-time")
    shown(page, "By team and project")
    click(page, ".causes > li > button .title", "The training hangs")
    click(page, ".causes li li button .title", "nests")
    shown(page, "birds\n30 h · 1 run")
    assert page.evaluate("document.querySelectorAll('main .card a').length") == 0
    keep_picture(page, "lost-organisation")
    page.resize(390, 800, dark=True)
    check(page, "/-/billing/lost-time?cause=hang")
    keep_picture(page, "lost-organisation-phone")
    page.resize(1280, 900)
    page.call("Network.clearBrowserCookies")
    signed_in(page, "bob")
    page.open("/-/billing/lost-time")
    shown(page, "Page not found")


def test_a_team_without_runs_says_so(page: Browser, people: People) -> None:
    people.accounts.owned_projects.create(
        people.accounts.teams.by_name("empty").id, "nothing", CLI, people.now_ms
    )
    people.rights_changed()
    signed_in(page, "carla")
    page.open("/empty/nothing/findings")
    shown(page, "There were no runs.")
    keep_picture(page, "lost-none")


def test_rules_and_automations_about_findings_are_made_in_forms(page: Browser, people: People) -> None:
    signed_in(page, "ada")
    page.open("/vision/-/settings/notifications")
    click(page, "main button", "New rule")
    fill(page, "Name", "hangs", "dialog")
    choose(page, "finding")
    fill(page, "Findings", "hangs", "dialog")
    click(page, "dialog button", "Switch on")
    shown(page, "there is no finding 'hangs'; expected some of checkpoint_stalls,", "dialog")
    fill(page, "Findings", "hang, idle", "dialog")
    click(page, "dialog button", "Preview")
    shown(page, "Would have fired", "dialog")
    keep_picture(page, "rule-form")
    click(page, "dialog button", "Switch on")
    shown(page, "finding hang or idle, warning or worse")
    page.open("/vision/-/settings/notifications")
    click(page, "main button", "New automation")
    fill(page, "Name", "stop hangs", "dialog")
    choose(page, "finding.opened")
    fill(page, "Findings", "hang", "dialog")
    click(page, "dialog label", "Ada")
    keep_picture(page, "automation-form")
    click(page, "dialog button", "Save")
    shown(page, "Finding hang, warning or worse, opens", "table")


def choose(page: Browser, value: str) -> None:
    """Choose an option of a dialog."""
    page.evaluate(
        f"(option => {{ option.parentElement.value = {value!r};"
        " option.parentElement.dispatchEvent(new Event('change', {bubbles: true})); })"
        f"(document.querySelector('dialog option[value=\"{value}\"]'))"
    )


IDLE = Finding(
    id="idle",
    severity="warning",
    confidence="certain",
    from_ms=0,
    to_ms=None,
    share=0.5,
    hosts=("node1",),
    devices=(0,),
    ranks=(),
    text="The GPU is idle.",
    evidence=(Evidence("gpu.0.gpu", "node1", 0.0, "%", None),),
    device_hours=1.0,
    advice="Stop it.",
    docs="",
)


def going_on(people: People, run: str, project: str) -> int:
    """A new run of bob that goes on, in a project and a team of their own; returns its number."""
    bob, team = people.accounts.users.by_name("bob").id, own_team(people, project)
    store = people.served.metadata_store
    registration = WriterRegistration(
        run, "monitor.node1.1", project, interval_s=3600, sender=Sender(team, author_id=bob)
    )
    [writer] = store.writers.join([registration], people.now_ms - HOUR_MS)
    store.writers.record_heartbeats([WriterHeartbeat(writer.writer_id, people.now_ms, people.now_ms)])
    people.rights_changed()
    return writer.run_id


def keep(people: People, run_id: int, *findings: Finding) -> None:
    """Have the server keep a judgement, as the thread that judges does."""
    now_ms = people.now_ms
    verdict = (
        Findings(findings[0].id, findings[0].text, list(findings))
        if findings
        else Findings("healthy", "Healthy.", [])
    )
    judged = JudgedRun(run_id, RULES_VERSION, now_ms, now_ms - HOUR_MS, now_ms, False, verdict, 8.0)
    people.served.app.services.findings.keep(judged)


def test_a_finding_opens_grows_and_closes_while_one_looks(page: Browser, people: People) -> None:
    run = going_on(people, "live", "marsh")
    keep(people, run)
    signed_in(page, "bob")
    page.open("/marsh/marsh/runs/live")
    shown(page, "Healthy.", ".verdict")
    page.wait("document.querySelector('.link.open')")
    idle = replace(IDLE, from_ms=people.now_ms - 20 * MINUTE_MS)
    keep(people, run, idle)
    shown(page, "The GPU is idle.", ".verdict .text")
    click(page, ".verdict button", "What decided")  # it came meanwhile, and takes one line until it is opened
    shown(page, "since ", ".verdict")
    notices = "[...document.querySelectorAll('main > .notice')].map(e => e.innerText).join()"
    assert "idle" not in page.evaluate(notices)  # the verdict says it, and no notice repeats it
    keep_picture(page, "finding-live")
    keep(people, run, replace(idle, text="The GPU is idle, still.", device_hours=2.0))
    shown(page, "The GPU is idle, still.", ".verdict .text")
    shown(page, "2.0 device-hours lost", ".verdict")
    keep(people, run, replace(idle, to_ms=people.now_ms - 10 * MINUTE_MS, text="The GPU was idle."))
    shown(page, "for 10 min 00 s", ".verdict")
    assert page.evaluate("document.querySelectorAll('.verdict .severity').length") == 1


def test_a_table_of_runs_is_filtered_by_findings(page: Browser, people: People) -> None:
    run = going_on(people, "listed", "swamp")
    keep(people, run, replace(IDLE, from_ms=people.now_ms - 20 * MINUTE_MS))
    signed_in(page, "bob")
    page.open("/swamp/swamp/findings?cause=idle")
    click(page, ".causes a", "All runs with this finding")
    names = "[...document.querySelectorAll('tbody .name')].map(e => e.innerText.split('\\n')[0]).sort()"
    page.wait(f"{names}.join() === 'listed'")
    page.open("/swamp/swamp/runs?q=finding:hang")
    page.wait("document.querySelector('main')?.innerText.includes('No runs')")
