"""Alert rules about findings, from the kept results to the outbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runvitals.findings.finding import Finding, Findings
from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.server.alerts.dry_run import dry_run
from runvitals.server.alerts.finding_watch import LATE_MS, FindingWatch
from runvitals.server.alerts.ready_rules import READY_RULES
from runvitals.server.alerts.rule_notices import RuleNotices
from runvitals.server.alerts.rules import InvalidRule, rule
from runvitals.server.alerts.storage.firings import Firing
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.findings.kept_result import HOLD_MS, JudgedRun, continue_result
from runvitals.server.runs.storage.writer_registration import RegisteredWriter
from runvitals.store.samples.sqlite import SqliteChunks
from tests.server.alerts.conftest import Team

HANG = Finding(
    id="hang",
    severity="critical",
    confidence="certain",
    from_ms=0,
    to_ms=None,
    share=0.5,
    hosts=("node1",),
    devices=(),
    ranks=(),
    text="The training makes no steps.",
    evidence=(),
    device_hours=1.0,
    advice="Look at its stacks.",
    docs="reference/findings.md#hang",
)
IDLE = replace(HANG, id="idle", severity="warning", text="The devices are idle.", advice="Stop it.")


class Judged:
    """A server's rules about findings, and what is found of its runs."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.store = team.store
        self.results = team.store.findings
        self.restart()

    def restart(self) -> None:
        notices = RuleNotices(self.store, self.team.directory, self.team.clock)
        self.watch = FindingWatch(self.store, notices.note, self.team.clock, watches_all=notices.watches_all)

    def add_rule(self, entity_id: int | None = None, **definition: Any) -> int:
        whole = {
            "name": "hangs",
            "condition": {"kind": "finding", "findings": ["hang"], "severity": "warning"},
            "tell": ["author"],
            **definition,
        }
        by, now_ms = CLI, self.team.clock()
        return self.store.alerts.rules.create(entity_id or self.team.team.id, whole, True, by, now_ms).id

    def find(self, writer: RegisteredWriter, *found: Finding, is_final: bool = False) -> None:
        """Keep that a run was judged now, and evaluate the rules."""
        now_ms = self.team.clock()
        verdict = found[0].id if found else "healthy"
        judged = JudgedRun(
            writer.run_id, 1, now_ms, now_ms, now_ms, is_final, Findings(verdict, "", found), 100.0
        )
        result, _ = continue_result(self.results.of_run(writer.run_id), judged)
        self.results.put([result])
        self.watch.evaluate()

    def firings(self) -> list[Firing]:
        return self.store.alerts.firings.of_entity(self.team.team.id, 100)


@pytest.fixture
def judged(team: Team) -> Judged:
    return Judged(team)


def test_a_finding_that_lasts_fires_and_resolves_when_it_closes(judged: Judged) -> None:
    judged.add_rule(**{"for": "5m"})
    writer = judged.team.run("otter-1")
    hang = replace(HANG, from_ms=judged.team.clock())
    judged.team.wait(4 * MINUTE_MS)
    judged.find(writer, hang)
    assert not judged.firings()
    judged.team.wait(MINUTE_MS)
    judged.find(writer, hang)
    judged.find(writer, hang)
    [firing] = judged.firings()
    assert (firing.key, firing.host, firing.ended_ms) == ("hang", "node1", None)
    [told] = judged.team.told()
    assert told.target == f"user:{judged.team.bob.id}"
    assert told.text == (
        "[vision/digits] otter-1: hangs\n\nThe training makes no steps. What to do: Look at its stacks\n\n"
        "You get this because the rule names you as a receiver."
    )
    assert told.payload["path"] == "/vision/digits/runs/otter-1"
    judged.team.wait(MINUTE_MS)
    ended = replace(hang, to_ms=judged.team.clock())
    judged.find(writer, ended)
    assert judged.firings()[0].ended_ms is None
    judged.team.wait(HOLD_MS)
    judged.find(writer, ended)
    assert judged.firings()[0].ended_ms == judged.team.clock()
    [over] = [message.text for message in judged.team.told() if "is over" in message.text]
    assert over.startswith("[vision/digits] otter-1: hangs is over\n\nThe training makes no steps – over")


@pytest.mark.parametrize(
    ("condition", "scope", "fires"),
    [
        ({}, {}, ["hang", "idle"]),
        ({"findings": ["idle", "swapping"]}, {}, ["idle"]),
        ({"severity": "critical"}, {}, ["hang"]),
        ({}, {"projects": ["other"]}, []),
        ({}, {"projects": ["digits"], "hosts": ["node*"]}, ["hang", "idle"]),
        ({}, {"hosts": ["gpu*"]}, []),
        ({}, {"filter": "tag:hero"}, []),
        ({}, {"enabled": False}, ["hang", "idle"]),
    ],
)
def test_which_findings_a_rule_is_about(
    judged: Judged, condition: dict[str, Any], scope: dict[str, Any], fires: list[str]
) -> None:
    judged.add_rule(condition={"kind": "finding", **condition}, **scope)
    now_ms = judged.team.clock()
    judged.find(judged.team.run("otter-1"), replace(HANG, from_ms=now_ms), replace(IDLE, from_ms=now_ms))
    assert sorted(firing.key for firing in judged.firings()) == fires


def test_a_finding_on_many_hosts_fires_once(judged: Judged) -> None:
    judged.add_rule(condition={"kind": "finding"})
    writer, now_ms = judged.team.run("otter-1"), judged.team.clock()
    judged.find(writer, *(replace(IDLE, from_ms=now_ms, hosts=(f"node{i}",)) for i in range(1, 30)))
    [firing] = judged.firings()
    judged.find(writer, replace(IDLE, from_ms=now_ms, hosts=("node7",)))
    assert judged.firings() == [firing]
    judged.team.wait(HOLD_MS)
    judged.find(writer)
    assert judged.firings()[0].ended_ms is not None


def test_a_restart_neither_repeats_nor_forgets(judged: Judged) -> None:
    judged.add_rule()
    writer = judged.team.run("otter-1")
    hang = replace(HANG, from_ms=judged.team.clock())
    judged.find(writer, hang)
    judged.restart()
    judged.find(writer, hang)
    assert len(judged.firings()) == 1
    judged.restart()
    judged.team.wait(HOLD_MS)
    judged.find(writer)
    assert judged.firings()[0].ended_ms is not None


def test_a_new_rule_looks_at_what_goes_on(judged: Judged) -> None:
    writer = judged.team.run("otter-1")
    judged.find(writer, replace(HANG, from_ms=judged.team.clock()))
    judged.team.wait(30 * MINUTE_MS)
    judged.add_rule()
    judged.watch.evaluate()
    assert [firing.key for firing in judged.firings()] == ["hang"]


def test_a_finding_of_a_short_run_is_told_though_it_is_over(judged: Judged) -> None:
    judged.add_rule(**{"for": "1m"})
    now_ms = judged.team.clock()
    judged.team.wait(2 * MINUTE_MS)
    over = replace(HANG, from_ms=now_ms, to_ms=now_ms + 90_000)
    writer = judged.team.run("otter-1")
    judged.find(writer, over, is_final=True)
    judged.find(writer, over, is_final=True)
    [firing] = judged.firings()
    assert firing.ended_ms is not None
    assert len(judged.team.told()) == 1
    judged.find(judged.team.run("otter-2"), replace(over, to_ms=now_ms + 30_000), is_final=True)
    assert len(judged.firings()) == 1  # it lasted too short


def test_nobody_is_told_of_what_is_long_over(judged: Judged) -> None:
    judged.add_rule()
    old_ms = judged.team.clock()
    judged.team.wait(2 * LATE_MS)
    judged.find(judged.team.run("otter-1"), replace(HANG, from_ms=old_ms, to_ms=old_ms + 1000), is_final=True)
    assert not judged.firings()


def test_the_end_of_a_run_ends_what_fires_silently(judged: Judged) -> None:
    judged.add_rule()
    writer = judged.team.run("otter-1")
    hang = replace(HANG, from_ms=judged.team.clock())
    judged.find(writer, hang)
    assert len(judged.team.told()) == 1
    judged.team.wait(1000)
    judged.find(writer, replace(hang, to_ms=judged.team.clock()), is_final=True)
    assert judged.firings()[0].ended_ms is not None
    assert not judged.team.told()


def test_a_cooldown_holds_back_a_finding_that_comes_and_goes(judged: Judged) -> None:
    judged.add_rule(cooldown="5h")
    writer = judged.team.run("otter-1")

    def come_and_go() -> None:
        judged.find(writer, replace(HANG, from_ms=judged.team.clock()))
        judged.team.wait(HOLD_MS)
        judged.find(writer)
        judged.team.wait(HOUR_MS)

    for _ in range(3):
        come_and_go()
    assert len(judged.firings()) == 1
    judged.team.wait(2 * HOUR_MS)
    come_and_go()
    assert len(judged.firings()) == 2


def test_rules_of_another_team_do_not_look(judged: Judged) -> None:
    other = judged.store.accounts.teams.create("speech", CLI, 1, administrator=judged.team.ada.id)
    judged.add_rule(entity_id=other.id)
    judged.find(judged.team.run("otter-1"), replace(HANG, from_ms=judged.team.clock()))
    assert not judged.store.alerts.firings.open()


def test_a_deleted_run_ends_what_fires(judged: Judged) -> None:
    judged.add_rule()
    writer = judged.team.run("otter-1")
    judged.find(writer, replace(HANG, from_ms=judged.team.clock()))
    judged.store.runs.delete([writer.run_id], judged.team.clock())
    judged.team.wait(MINUTE_MS)
    judged.watch.evaluate()
    assert [firing.ended_ms is not None for firing in judged.firings()] == [True]


def test_an_unknown_finding_is_refused_with_those_that_exist() -> None:
    with pytest.raises(InvalidRule) as caught:
        rule({"name": "a", "condition": {"kind": "finding", "findings": ["hangs"]}})
    text = caught.value.fields["condition.findings"]
    assert text.startswith("there is no finding 'hangs'; expected some of ")
    assert "hang," in text
    assert "input_bound_cpu" in text
    with pytest.raises(InvalidRule, match="expected one of info, warning, critical"):
        rule({"name": "a", "condition": {"kind": "finding", "severity": "error"}})


def test_there_are_ready_rules_for_the_most_common_causes() -> None:
    about = {
        each["name"]: rule(each).condition for each in READY_RULES if each["condition"]["kind"] == "finding"
    }
    assert "hang" in about["Training hangs"].findings
    assert "idle" in about["Devices of a run are idle"].findings
    assert "input_bound_disk" in about["Devices wait for data"].findings
    assert "memory_errors" in about["Hardware slows a run down"].findings


def test_a_dry_run_finds_when_a_rule_would_have_fired(judged: Judged, tmp_path: Path) -> None:
    now_ms = judged.team.clock()
    judged.team.wait(HOUR_MS)
    first = replace(HANG, from_ms=now_ms, to_ms=now_ms + 10 * MINUTE_MS)
    same = replace(HANG, from_ms=now_ms + 2 * MINUTE_MS, to_ms=now_ms + 20 * MINUTE_MS, hosts=("node2",))
    later = replace(HANG, from_ms=now_ms + 30 * MINUTE_MS)
    short = replace(HANG, from_ms=now_ms + 22 * MINUTE_MS, to_ms=now_ms + 23 * MINUTE_MS)
    idle = replace(IDLE, from_ms=now_ms)
    judged.find(judged.team.run("otter-1"), first, same, short, later, idle)
    definition = {"name": "a", "for": "5m", "condition": {"kind": "finding", "findings": ["hang"]}}
    with SqliteChunks(str(tmp_path / "samples")) as samples:
        result = dry_run(
            judged.store,
            samples,
            judged.team.team.id,
            rule(definition),
            now_ms,
            judged.team.clock(),
            None,
        )
    assert result.runs == 1
    assert [(firing.key, firing.run, firing.fired_ms, firing.ended_ms) for firing in result.firings] == [
        ("hang", "otter-1", now_ms + 35 * MINUTE_MS, None),
        ("hang", "otter-1", now_ms + 5 * MINUTE_MS, now_ms + 20 * MINUTE_MS),
    ]
