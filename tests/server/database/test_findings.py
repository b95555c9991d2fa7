"""The findings about runs, as both databases keep them."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import text

from runvitals.findings.finding import RULES_VERSION, Finding, Findings
from runvitals.model.ending import Ending
from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.run_sort import RunSort
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, migrate
from runvitals.server.events.finding_changes import FindingClosed, FindingGrew, FindingOpened
from runvitals.server.findings.kept_result import JudgedRun, KeptResult, continue_result
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writers import WriterEnd, WriterHeartbeat
from tests.server.database.conftest import NewAddress
from tests.server.database.runs import T0, joined

HANG = Finding(
    id="hang",
    severity="critical",
    confidence="likely",
    from_ms=T0 + 60_000,
    to_ms=None,
    share=0.5,
    hosts=("n0\0", "é"),
    devices=(0, 3),
    ranks=(3,),
    text="The run <b>hangs</b>\0.",
    evidence=(),
    device_hours=1.23456,
    advice="",
    docs="",
)
IDLE = replace(HANG, id="idle", severity="warning", from_ms=T0, to_ms=T0 + 30_000, device_hours=0.5)
BOTH = Findings("hang", HANG.text, [HANG, IDLE], ["memory_growth"])
WELL = Findings("healthy", "Nothing is wrong with this run.")


def judged(run_id: int, findings: Findings, up_to_ms: int = T0 + 100_000, final: bool = False) -> JudgedRun:
    """A judgement of a run of ten device-hours."""
    return JudgedRun(run_id, RULES_VERSION, up_to_ms, T0, up_to_ms, final, findings, 10.0)


def kept(run_id: int, findings: Findings) -> KeptResult:
    return continue_result(None, judged(run_id, findings))[0]


def test_what_is_kept_is_read_back(metadata_store: MetadataStore) -> None:
    run_id, other = (joined(metadata_store, uid, started_ms=T0).run_id for uid in "ab")
    table = metadata_store.findings
    assert table.of_run(run_id) is None
    assert table.verdicts([run_id]) == {}
    result = kept(run_id, BOTH)
    table.put([result, kept(other, WELL), kept(12345, BOTH)])  # the last one was purged a moment ago
    read = table.of_run(run_id)
    assert read is not None
    assert (read.kept, read.verdict, read.numbered) == (result.kept, result.verdict, 2)
    assert read.findings.to_json() == result.findings.to_json()
    assert table.of_runs([run_id, other, 12345]).keys() == {run_id, other}
    verdict = table.verdicts([run_id])[run_id]
    assert (verdict.id, verdict.severity, verdict.findings) == ("hang", "critical", ("hang", "idle"))
    assert verdict.lost_device_hours == 1.73456
    table.put([kept(run_id, WELL)])
    assert table.verdicts([run_id])[run_id].severity == "healthy"


def test_runs_are_found_and_sorted_by_findings(metadata_store: MetadataStore) -> None:
    numbers = [joined(metadata_store, uid, started_ms=T0 + n).run_id for n, uid in enumerate("abcd")]
    unknown = Findings("unknown", "Too short.")
    results = [kept(number, one) for number, one in zip(numbers, (BOTH, WELL, unknown), strict=False)]
    metadata_store.findings.put(results)

    def found(filter_text: str) -> str:
        page = metadata_store.runs.page(Filter(terms=parse(filter_text)), RunSort("id", False), T0)
        return "".join(row.uid for row in page.runs)

    assert found("finding:hang") == found("finding:idle,straggler") == found("verdict:hang") == "a"
    assert found("-finding:hang") == "bcd"
    assert found("verdict:healthy,unknown") == "bc"
    assert found("-verdict:h*") == "cd"
    assert found("finding:hang verdict:healthy") == found("verdict:idle") == ""
    assert found("lost_hours>1") == "a"

    def ordered(sort: str) -> str:
        page = metadata_store.runs.page(Filter(), RunSort.parse(sort), T0)
        return "".join(row.uid for row in page.runs)

    assert ordered("-verdict") == "abcd"  # without a verdict last
    assert ordered("-lost_hours,id") == "abcd"


def test_a_finding_keeps_its_number_and_start_while_it_grows(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "a", started_ms=T0).run_id
    first, changes = continue_result(None, judged(run_id, Findings("hang", "", [HANG])))
    assert [type(change) for change in changes] == [FindingOpened]
    metadata_store.findings.put([first])
    moved = replace(HANG, from_ms=T0 + 40_000, share=0.6)
    before = metadata_store.findings.of_run(run_id)
    second, changes = continue_result(
        before, judged(run_id, Findings("hang", "", [IDLE, moved]), T0 + 200_000)
    )
    assert [(type(change), change.number) for change in changes] == [
        (FindingOpened, 2),
        (FindingClosed, 2),
        (FindingGrew, 1),
    ]
    assert [each.finding.from_ms for each in second.kept] == [T0, HANG.from_ms]
    ended = replace(HANG, to_ms=T0 + 250_000)
    third, changes = continue_result(
        second, judged(run_id, Findings("hang", "", [ended]), T0 + 300_000, final=True)
    )
    assert [(type(change), change.number) for change in changes] == [(FindingClosed, 1)]
    assert third.numbered == 2


def test_a_finding_that_comes_and_goes_stays_open_for_a_while(metadata_store: MetadataStore) -> None:
    run_id, table = joined(metadata_store, "a", started_ms=T0).run_id, metadata_store.findings

    def judge(minute: float, *found: Finding, final: bool = False) -> list[tuple[type, int, int | None]]:
        """Keep what was found at a minute; what changed, with the minutes of ends."""
        findings = Findings(found[0].id if found else "healthy", "", found, () if found else ("hang",))
        of_minute = judged(run_id, findings, T0 + int(minute * 60_000), final)
        result, changes = continue_result(table.of_run(run_id), of_minute)
        table.put([result])
        ends = [change.finding.to_ms for change in changes]
        minutes = [None if end is None else (end - T0) // 60_000 for end in ends]
        return [(type(each), each.number, end) for each, end in zip(changes, minutes, strict=True)]

    assert judge(2, HANG) == [(FindingOpened, 1, None)]
    for minute in range(4, 20, 4):
        assert judge(minute) == []
        assert judge(minute + 2, replace(HANG, from_ms=T0 + minute * 60_000)) == [(FindingGrew, 1, None)]
    ended = replace(HANG, to_ms=T0 + 20 * 60_000)
    assert judge(22, ended) == [(FindingGrew, 1, None)]
    assert judge(24) == []
    held = table.of_run(run_id)
    assert held is not None
    assert (held.verdict.id, list(held.findings.fine)) == ("hang", [])
    assert [(each.number, each.finding.to_ms, each.seen_ms) for each in held.kept] == [
        (1, None, T0 + 20 * 60_000)
    ]
    assert judge(25.5) == [(FindingClosed, 1, 20)]
    assert judge(27) == []
    assert judge(40, HANG) == [(FindingOpened, 1, None)]
    assert judge(90) == []  # what came back once is held for longer
    assert judge(95, HANG) == [(FindingGrew, 1, None)]
    assert judge(156) == [(FindingClosed, 1, 95)]
    assert judge(300, HANG) == [(FindingOpened, 2, None)]
    assert judge(301, final=True) == [(FindingClosed, 2, 300)]


def test_what_another_finding_explains_closes_at_once(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "a", started_ms=T0).run_id
    idle = replace(IDLE, to_ms=None)
    before, _ = continue_result(None, judged(run_id, Findings("idle", "", [idle])))
    _, changes = continue_result(before, judged(run_id, Findings("hang", "", [HANG]), T0 + 160_000))
    assert [(type(change), change.finding.id) for change in changes] == [
        (FindingOpened, "hang"),
        (FindingClosed, "idle"),
    ]


def test_what_is_due(metadata_store: MetadataStore) -> None:
    table = metadata_store.findings
    first, second = (joined(metadata_store, uid, started_ms=T0) for uid in "ab")
    assert [run.uid for run in table.due(RULES_VERSION, T0, 10)] == ["b", "a"]
    assert [run.uid for run in table.due(RULES_VERSION, T0, 10, [first.run_id])] == ["a"]
    metadata_store.writers.record_ends([WriterEnd(first.writer_id, Ending("finished", 0), T0 + 50_000)])
    later = T0 + 200_000
    table.put([continue_result(None, judged(first.run_id, WELL, later, final=True))[0]])
    table.put([continue_result(None, judged(second.run_id, WELL, later))[0]])
    assert "a" not in [run.uid for run in table.due(RULES_VERSION, T0, 10)]
    assert "a" in [run.uid for run in table.due(RULES_VERSION + 1, T0, 10)]
    assert table.due(RULES_VERSION - 1, T0, 10) == []  # a server of a later version has judged them
    metadata_store.writers.record_heartbeats([WriterHeartbeat(first.writer_id, later + 1, T0 + 60_000)])
    assert "a" in [run.uid for run in table.due(RULES_VERSION, T0, 10)]
    assert first.run_id in table.heard_since(later)
    table.note_failure(first.run_id, "no\0", RULES_VERSION, later + 2)
    failed = table.of_run(first.run_id)
    assert failed is not None
    assert failed.findings.to_json() == WELL.to_json()
    assert "a" in [run.uid for run in table.due(RULES_VERSION, T0, 10)]


def test_findings_go_with_the_run(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "a", started_ms=T0).run_id
    metadata_store.findings.put([kept(run_id, BOTH)])
    metadata_store.runs.delete([run_id], T0)
    assert metadata_store.findings.due(RULES_VERSION, T0, 10) == []
    metadata_store.runs.purge([run_id], T0)
    assert metadata_store.findings.of_run(run_id) is None

    def rows(connection: object) -> int:
        return int(connection.execute(text("SELECT count(*) FROM finding")).scalar_one())  # type: ignore[attr-defined]

    assert metadata_store.write(rows) == 0


def test_the_tables_can_be_taken_back(empty: NewAddress) -> None:
    database = Database(empty())
    try:
        migrate(database)
        downgrade(database, "0043")
        migrate(database)
        count = text("SELECT count(*) FROM judgement")
        assert database.write(lambda connection: connection.execute(count).scalar_one()) == 0
    finally:
        database.close()
