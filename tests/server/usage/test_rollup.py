"""Days of runs in the stores, computed while they go on, against sums that are computed in another way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Table, select

from runvitals.model.durations import DAY_MS
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.background.account_trash import AccountTrash
from runvitals.server.database.tables.runs import device, run
from runvitals.server.database.tables.usage import (
    usage_device_run_day,
    usage_dirty,
    usage_host_run_day,
    usage_run_day,
)
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, Sender
from runvitals.server.usage.days import Month
from runvitals.server.usage.report import UsageSelection
from runvitals.server.usage.reports import UsageReports
from runvitals.server.usage.statements import Statements
from runvitals.server.usage.storage.rates import StoredRate
from runvitals.server.usage.storage.statements import Wanted
from tests.server.usage.figures.cluster import MINUTE_MS, SimulatedCluster, SlowMonth, simulate
from tests.server.usage.stored_cluster import UsageStores, replay
from tests.server.usage.used import use

HOUR_MS = 3_600_000


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[UsageStores]:
    stores = UsageStores(tmp_path)
    yield stores
    stores.close()


def rows(stores: UsageStores, table: Table) -> list[Any]:
    return stores.metadata_store.write(lambda connection: connection.execute(select(table)).all())


def everything(stores: UsageStores) -> list[Any]:
    return [rows(stores, table) for table in (usage_run_day, usage_host_run_day, usage_device_run_day)]


def test_days_that_go_on_have_the_figures_of_every_minute(stores: UsageStores) -> None:
    cluster = simulate(2, "Europe/Berlin", "2026-10-22", 7)  # the clocks go back on the 25th
    for number, _ in enumerate(replay(stores, cluster, 5 * HOUR_MS)):
        stores.rollup.update()
        if number == 12:
            stores.rollup = stores.new_rollup()  # the server was restarted
    assert not rows(stores, usage_dirty)
    assert_equal(stores, cluster)
    before = everything(stores)
    stores.new_rollup().rebuild(Month.named("2026-10"))
    assert everything(stores) == before


@pytest.mark.parametrize(
    ("section", "mark", "counts"),
    [
        ("run", {"imported_from": "wandb"}, False),
        ("machine", {"simulated": "by runvitals"}, False),
        ("run", {"name": "otter"}, True),
    ],
)
def test_imported_and_simulated_runs_use_nothing(
    stores: UsageStores, section: str, mark: dict[str, str], counts: bool
) -> None:
    who = one_day(stores)
    host = "node1" if section == "machine" else ""
    stores.metadata_store.sections.merge([SectionUpdate(who.run_id, section, mark, 1, host)])
    stores.rollup.update()
    assert bool(rows(stores, usage_run_day)) is counts


def test_a_run_that_was_deleted_for_good_stays_counted_when_a_month_is_rebuilt(stores: UsageStores) -> None:
    who = one_day(stores)
    stores.rollup.update()
    before = everything(stores)
    assert all(before)
    stores.metadata_store.runs.delete([who.run_id], stores.now_ms)
    stores.metadata_store.runs.purge([who.run_id], stores.now_ms)
    stores.new_rollup().rebuild(Month.named("2026-10"))
    assert everything(stores) == before


def test_usage_of_a_team_that_was_deleted_for_good_stays_under_its_name(stores: UsageStores) -> None:
    accounts = stores.metadata_store.accounts
    team = accounts.teams.create("vision", CLI, 1)
    one_day(stores, sender=Sender(team.id))
    stores.rollup.update()
    accounts.teams.delete("vision", CLI, stores.now_ms)
    runs = stores.metadata_store.runs

    def remove(run_ids: list[int]) -> None:
        runs.delete(run_ids, stores.now_ms)
        runs.purge(run_ids, stores.now_ms)

    AccountTrash(stores.metadata_store, remove).empty(stores.now_ms + 40 * DAY_MS)
    assert runs.places("run-1") == []
    stores.new_rollup().rebuild(Month.named("2026-10"))
    reports = UsageReports(stores.metadata_store, lambda: stores.now_ms)
    month = Month.named("2026-10")
    [row] = reports.rows(UsageSelection(month.first, month.last), ("team", "project"))
    assert row.key == {"team": "vision", "project": "digits"}
    assert row.figures["device_hours"] == pytest.approx(29 / 60)


def test_a_host_that_was_lost_counts_until_its_last_sample(stores: UsageStores) -> None:
    one_day(stores, ends=False)
    stores.now_ms += 10 * HOUR_MS
    stores.rollup.update()
    [day] = rows(stores, usage_run_day)
    assert (day.tracked_ms, day.state) == (29 * MINUTE_MS, "lost")
    figures = figures_of_october(stores)
    assert figures["device_failed_hours"] == figures["device_hours"] == pytest.approx(29 / 60)


def test_rebuilding_forgets_runs_that_turned_out_to_be_imported(stores: UsageStores) -> None:
    who = one_day(stores)
    stores.rollup.update()
    assert all(everything(stores))
    mark = SectionUpdate(who.run_id, "run", {"imported_from": "wandb"}, 1, "")
    stores.metadata_store.sections.merge([mark])
    stores.new_rollup().rebuild(Month.named("2026-10"))
    assert everything(stores) == [[], [], []]


def test_runs_on_slices_of_a_device_use_their_part_of_it(stores: UsageStores) -> None:
    small, large = one_day(stores, "small"), one_day(stores, "large")
    for who, visible in ((small, "1g.10gb"), (large, "2g.20gb")):
        slices = [
            {"uuid": f"MIG-{name}", "name": name, "visible": name == visible}
            for name in ("1g.10gb", "2g.20gb")
        ]
        machine = {"gpu_nvidia": [{"uuid": "GPU-node1/0", "name": "NVIDIA H100", "slices": slices}]}
        stores.metadata_store.sections.merge([SectionUpdate(who.run_id, "machine", machine, 1, "node1")])
    stores.rollup.update()
    used = {row.run_id: row.share_ms for row in rows(stores, usage_device_run_day)}
    minutes = 29 * MINUTE_MS
    assert used == {small.run_id: round(minutes / 7), large.run_id: round(minutes * 2 / 7)}


@pytest.mark.parametrize("minutes", [0, 10, 30])
def test_power_in_doubt_is_no_energy(stores: UsageStores, minutes: int) -> None:
    day = stores.calendar.day(date(2026, 10, 20))
    start_ms = day.start_ms + HOUR_MS
    stores.now_ms = start_ms + HOUR_MS
    who = stores.join("run-1", "node1", start_ms)
    stores.devices(who, ["node1/0"])
    t = np.arange(start_ms, start_ms + HOUR_MS // 2, MINUTE_MS, dtype=np.int64)
    doubted = np.arange(len(t)) < minutes
    watts, suspect = np.where(doubted, 588.0, 30.0), np.where(doubted, 1.0, np.nan)
    stores.append(
        who,
        ["cpu.mean", "gpu.0.gpu", "gpu.0.powerWatts", "gpu.0.powerSuspect"],
        t,
        np.column_stack([np.ones(len(t)), np.full(len(t), 90.0), watts, suspect]),
    )
    stores.end(who, int(t[-1]))
    stores.rollup.update()
    [device] = rows(stores, usage_device_run_day)
    assert device.estimated_mj == max(29 - minutes, 0) * 60 * 30 * 1000


def test_runs_share_the_energy_of_their_host_by_cpu_time(stores: UsageStores) -> None:
    runs = [one_day(stores, name, cpu) for name, cpu in (("busy", 75.0), ("calm", 25.0))]
    for who in runs:
        machine = {"cpu": {"available": 8.0}}
        stores.metadata_store.sections.merge([SectionUpdate(who.run_id, "machine", machine, 1, "node1")])
    stores.rollup.update()
    hosts = {row.run_id: row for row in rows(stores, usage_host_run_day)}
    minutes = 29 * MINUTE_MS
    assert [hosts[who.run_id].cpu_ms for who in runs] == [minutes * 6, minutes * 2]
    assert [hosts[who.run_id].measured_mj for who in runs] == [29 * 30_000] * 2
    reading = stores.metadata_store.usage.reading
    day = "2026-10-20"
    energy = reading.host_energy(day, day)
    assert [energy[who.run_id, day] for who in runs] == [29 * 45_000, 29 * 15_000]
    assert reading.cpu_time(day, day)[runs[0].run_id, day] == minutes * 6


def test_time_in_which_a_device_is_busy_but_no_step_is_logged_is_hung(stores: UsageStores) -> None:
    day = stores.calendar.day(date(2026, 10, 20))
    start_ms = day.start_ms + 20 * HOUR_MS
    minute = np.arange(0, 8 * 60, 4, dtype=np.int64)
    times = start_ms + minute * MINUTE_MS
    use = np.where((minute >= 60) & (minute < 64), 50.0, 95.0)  # calm for a moment
    steps = start_ms + np.array([20, 32, 90, 92, 400]) * MINUTE_MS + 500
    monitor = training = None
    for first in range(0, len(times), 2):
        stores.now_ms = int(times[first]) + 10 * MINUTE_MS
        if monitor is None:
            monitor = stores.join("run-1", "node1", start_ms)
            stores.devices(monitor, ["node1/0"])
            training = stores.join_training(monitor, "run-1", start_ms)
        assert training is not None
        part = slice(first, first + 2)
        stores.append(monitor, ["gpu.0.gpu"], times[part], use[part, None])
        late_ms = stores.now_ms - 40 * MINUTE_MS  # steps come later than samples, in any window
        mine = steps[(steps >= late_ms - 8 * MINUTE_MS) & (steps < late_ms)]
        stores.append(training, ["_step"], mine, np.ones((len(mine), 1)))
        stores.rollup.update()
        if first == 40:
            stores.rollup = stores.new_rollup()  # the server was restarted
    # From minute 36 to 56, 64 to 88, 96 to 400 and 404 to the end; midnight is after 240 minutes.
    hung = {row.day: row.hung_ms // MINUTE_MS for row in rows(stores, usage_device_run_day)}
    assert hung == {"2026-10-20": 20 + 24 + 144, "2026-10-21": 160 + 72}
    price = StoredRate("device_hours", "*", 6_000_000, "2026-10-01")
    stores.metadata_store.usage.rates.add(price, CLI, 1)
    assert figures_of_october(stores)["wasted_hung"] == figures_of_october(stores)["wasted"] == 7 * 6
    before = everything(stores)
    stores.new_rollup().rebuild(Month.named("2026-10"))
    assert everything(stores) == before


def test_charges_of_what_has_no_price_are_unknown(stores: UsageStores) -> None:
    store = stores.metadata_store
    team = store.accounts.teams.create("vision", CLI, 1).id
    use(store, "r1", "2026-10-05", entity_id=team, project="p", hours=3, state="finished")
    stores.now_ms = stores.calendar.day(date(2026, 10, 25)).start_ms
    reports = UsageReports(store, lambda: stores.now_ms)

    def charges() -> list[float | None]:
        return [one.value for one in reports.uses() if one.category == "charges"]

    assert charges() == [None, None]  # of the organisation, and of the team
    store.usage.rates.add(StoredRate("device_hours", "*", 0, "2026-01-01"), CLI, 1)
    assert charges() == [0.0, 0.0]


def test_a_whole_month_is_the_sum_of_its_days(stores: UsageStores) -> None:
    chance, store, october = random.Random(7), stores.metadata_store, Month.named("2026-10")
    team = store.accounts.teams.create("vision", CLI, 1).id
    store.usage.rates.add(StoredRate("device_hours", "*", 2_500_000, "2026-01-01"), CLI, 1)
    hours, failed = [0.0] * 31, 0.0
    for number in range(90):
        day, used, state = (
            chance.randrange(31),
            chance.randrange(1, 96) / 4,
            chance.choice(["failed", "finished"]),
        )
        name = f"2026-10-{day + 1:02}"
        use(store, f"r{number}", name, entity_id=team, project=f"p{number % 3}", hours=used, state=state)
        hours[day] += used
        failed += used * (state == "failed")
    stores.now_ms = stores.calendar.day(date(2026, 10, 25)).start_ms  # the clocks go back on this day
    reports = UsageReports(store, lambda: stores.now_ms)
    selection = UsageSelection(october.first, october.last)
    by_day = {row.key["day"]: row.figures["device_hours"] for row in reports.rows(selection, ("day",))}
    assert [by_day.get(f"2026-10-{day + 1:02}", 0) for day in range(31)] == hours
    month, cost = reports.report(selection, ("project",)), 2.5 * sum(hours)
    assert (month["sums"]["device_hours"], month["sums"]["cost"]) == (sum(hours), cost)
    assert sum(row["cost"] for row in month["rows"]) == cost
    assert month["sums"]["wasted"] == month["sums"]["wasted_failed"] == 2.5 * failed
    assert month["forecast"] == pytest.approx(cost * (31 * 24 + 1) / (24 * 24))
    [budget] = [one for one in reports.uses() if (one.entity_id, one.category) == (team, "charges")]
    assert (budget.value, budget.expected) == (cost, pytest.approx(month["forecast"]))
    statements = Statements(store, lambda: stores.now_ms)
    statements.compute(october)
    ([draft], _) = store.usage.statements.page(Wanted(), 10)
    assert draft.total_micro == round(cost * 100) * 10_000


def one_day(
    stores: UsageStores,
    name: str = "run-1",
    cpu: float = 50.0,
    sender: Sender | None = None,
    ends: bool = True,
) -> RegisteredWriter:
    """A run of half an hour on one device; the host takes 60 J in a minute."""
    day = stores.calendar.day(date(2026, 10, 20))
    start_ms = day.start_ms + HOUR_MS
    stores.now_ms = start_ms + HOUR_MS
    who = stores.join(name, "node1", start_ms, sender)
    stores.devices(who, ["node1/0"])
    t = np.arange(start_ms, start_ms + HOUR_MS // 2, MINUTE_MS, dtype=np.int64)
    values = np.column_stack([np.full(len(t), 90.0), np.full(len(t), cpu), 60.0 * np.arange(len(t))])
    stores.append(who, ["gpu.0.gpu", "cpu", "energy.package-0"], t, values)
    if ends:
        stores.end(who, int(t[-1]))
    return who


def figures_of_october(stores: UsageStores) -> dict[str, Any]:
    month = Month.named("2026-10")
    reports = UsageReports(stores.metadata_store, lambda: stores.now_ms)
    [row] = reports.rows(UsageSelection(month.first, month.last), ("month",))
    return row.figures


def assert_equal(stores: UsageStores, cluster: SimulatedCluster) -> None:
    slow = SlowMonth(cluster)
    days = {day.name for day in cluster.days}
    ids = {number: int(name.removeprefix("run-")) for number, name in _uids(stores).items()}
    tracked = {(ids[row.run_id], row.day): row.tracked_ms for row in rows(stores, usage_run_day)}
    assert {key: value for key, value in tracked.items() if value and key[1] in days} == {
        key: minutes * MINUTE_MS for key, minutes in slow.tracked.items()
    }
    stored = [row for row in rows(stores, usage_device_run_day) if row.day in days and row.share_ms]
    assert len(stored) == len(slow.devices)
    device_names = _devices(stores)
    for row in stored:
        expected = slow.devices[ids[row.run_id], device_names[row.device_id], row.day]
        assert row.share_ms == pytest.approx(float(expected.share) * MINUTE_MS, abs=1)
        assert row.busy_ms == pytest.approx(expected.busy * MINUTE_MS, abs=1)
        assert row.idle_ms == pytest.approx(float(expected.idle) * MINUTE_MS, abs=1)
        assert row.measured_mj == pytest.approx(expected.measured * 1000, abs=1)
        assert row.estimated_mj == pytest.approx(expected.estimated * 1000, abs=1)
        assert row.unknown_ms == pytest.approx(float(expected.share - expected.known) * MINUTE_MS, abs=2)


def _uids(stores: UsageStores) -> dict[int, str]:
    read = select(run.c.id, run.c.uid)
    return dict(stores.metadata_store.write(lambda connection: connection.execute(read).all()))


def _devices(stores: UsageStores) -> dict[int, str]:
    read = select(device.c.id, device.c.uuid)
    devices = stores.metadata_store.write(lambda connection: connection.execute(read).all())
    return {number: uuid.removeprefix("GPU-") for number, uuid in devices}
