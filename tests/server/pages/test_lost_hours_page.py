"""The pages of lost device-hours, and forms about findings, in a real browser."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from runvitals.findings.finding import Finding, Findings
from runvitals.model.durations import HOUR_MS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.findings.kept_result import JudgedRun, continue_result
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterHeartbeat
from tests.server.accounts.routes.people import People, serving_people
from tests.server.browser import Browser
from tests.server.pages.test_account_pages import at, check, fill, signed_in
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401

AXE = files("axe_core_python").joinpath("axe.min.js").read_text()
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


def picture(page: Browser, name: str) -> None:
    """For who wants to look: PICTURES=folder."""
    if folder := os.environ.get("PICTURES"):
        page.screenshot(Path(folder, f"{name}.png"))


def lose(people: People, uid: str, project: str, **hours: float) -> None:
    """A run of bob that lost hours to causes, each on a host of its own."""
    team, bob = people.accounts.teams.by_name("vision").id, people.accounts.users.by_name("bob").id
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
    judged = JudgedRun(writer.run_id, 1, *times, False, Findings(verdict, "", findings), 1e6)
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
    picture(page, "lost-project")
    causes = page.evaluate("[...document.querySelectorAll('.causes .numbers')].map(e => e.innerText)")
    assert causes == ["38 h · 1 run", "12 h · 1 run", "4.3 h · 1 run"]
    page.wait("document.querySelectorAll('.causes button')[1].click() || true")
    shown(page, "The training makes no steps, but the GPUs are busy: <b onclick=alert(1)>rank 3</b> waits.")
    assert (
        page.evaluate("document.querySelector('.causes li li a').pathname") == "/vision/digits/runs/otter-2"
    )
    assert page.evaluate("location.search") == "?cause=hang"
    picture(page, "lost-runs")
    page.resize(390, 800, dark=True)
    check(page, "/vision/digits/findings?cause=hang", AXE)
    picture(page, "lost-phone-dark")
    page.resize(390, 800)
    page.open("/vision?cause=idle")
    shown(page, "lost · 4 runs judged")
    shown(page, "digits · 4.3 h")
    shown(page, "faces · 0.5 h")
    check(page, "/vision?cause=idle", AXE)
    picture(page, "lost-team-phone")
    page.resize(1280, 900, dark=True)
    picture(page, "lost-team-dark")


def test_a_team_without_runs_says_so(page: Browser, people: People) -> None:
    people.accounts.owned_projects.create(
        people.accounts.teams.by_name("empty").id, "nothing", CLI, people.now_ms
    )
    people.rights_changed()
    signed_in(page, "carla")
    page.open("/empty/nothing/findings")
    shown(page, "There were no runs.")
    picture(page, "lost-none")


def test_rules_and_automations_about_findings_are_made_in_forms(page: Browser, people: People) -> None:
    signed_in(page, "ada")
    page.open("/vision/-/settings/rules")
    click(page, "main button", "New rule")
    fill(page, "Name", "hangs", "dialog")
    choose(page, "finding")
    fill(page, "Findings", "hangs", "dialog")
    click(page, "dialog button", "Switch on")
    shown(page, "there is no finding 'hangs'; expected some of checkpoint_stalls,", "dialog")
    fill(page, "Findings", "hang, idle", "dialog")
    click(page, "dialog button", "Preview")
    shown(page, "Would have fired", "dialog")
    picture(page, "rule-form")
    click(page, "dialog button", "Switch on")
    shown(page, "finding hang or idle, warning or worse")
    page.open("/vision/-/settings/automations")
    click(page, "main button", "New automation")
    fill(page, "Name", "stop hangs", "dialog")
    choose(page, "finding.opened")
    fill(page, "Findings", "hang", "dialog")
    click(page, "dialog label", "Ada")
    picture(page, "automation-form")
    click(page, "dialog button", "Save")
    shown(page, "Finding hang, warning or worse, opens", "table")


def choose(page: Browser, value: str) -> None:
    """Choose an option of a dialog."""
    page.evaluate(
        f"(option => {{ option.parentElement.value = {value!r};"
        " option.parentElement.dispatchEvent(new Event('change', {bubbles: true})); })"
        f"(document.querySelector('dialog option[value=\"{value}\"]'))"
    )
