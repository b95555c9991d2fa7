"""The figures of runs by day, and how much projects store."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    and_,
    delete,
    func,
    or_,
    select,
    update,
)

from runvitals.server.database.database import StoredTable, among, in_transaction, insert, put_rows
from runvitals.server.database.tables.runs import (
    device,
    project,
    run,
    run_device,
    section,
    writer,
    writer_schema,
)
from runvitals.server.database.tables.usage import (
    storage_day,
    usage_device_run_day,
    usage_host_run_day,
    usage_run_day,
)
from runvitals.server.usage.storage.names import copy_names

RUNNING = "running"
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RunOwner:
    """Whose a run is at present, and how far it is."""

    run_id: int
    entity_id: int | None
    project_id: int
    author_id: int | None
    service_account_id: int | None
    job_type: str
    state: str


@dataclass(frozen=True, slots=True)
class RunDay:
    """How long a run took on a day. `tracked_ms`: of all hosts, each time once; `host_ms`: the sum."""

    owner: RunOwner
    day: str
    tracked_ms: int
    host_ms: int


@dataclass(frozen=True, slots=True)
class HostRunDay:
    """The covered time of a run on a host and day; energy of the host in mJ, CPU time of the run's processes.

    Args:
        cpu_ms: None: not known.
        shared_cpu_ms, shared_mj: of the time in which other runs were on the host.
    """

    run_id: int
    day: str
    host: str
    covered: tuple[Interval, ...]
    measured_mj: int = 0
    unknown_ms: int = 0
    cpu_ms: int | None = None
    shared_cpu_ms: int | None = None
    shared_mj: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceRunDay:
    """How much a run used a device on a day; `used` as of `RunDevice`."""

    run_id: int
    day: str
    host: str
    device_id: int
    model: str
    used: bool | None
    share_ms: int
    busy_ms: int
    idle_ms: int
    measured_mj: int
    estimated_mj: int
    unknown_ms: int
    hung_ms: int


@dataclass(frozen=True, slots=True)
class UsedDevice:
    """A device that a run saw on a host at an index, and that it used or may have used.

    Args:
        slices: of MIG, by UUID, if the run uses only these; empty: the whole device.
        part: the share of the device that they are.
    """

    run_id: int
    host: str
    device_id: int
    position: int | None
    used: bool | None
    model: str
    identity: str = ""
    slices: frozenset[str] = frozenset()
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class StorageRow:
    """The bytes of a kind that a project stored at the beginning of a day."""

    day: str
    project_id: int
    kind: str
    entity_id: int | None
    bytes: int


class UsageFigureTable(StoredTable):
    """The figures of runs by day."""

    def owners(self, run_ids: Collection[int], now_ms: int) -> dict[int, RunOwner]:
        """Whose runs are; those that do not exist any more, or were simulated or imported, are left out."""
        running = and_(run.c.alive_until_ms.is_not(None), run.c.alive_until_ms >= now_ms)
        with self._database.read() as connection:
            of_runs = select(run, running.label("running")).where(among(connection, run.c.id, run_ids))
            rows = connection.execute(of_runs)
            owners = {
                row.id: RunOwner(
                    row.id,
                    row.entity_id,
                    row.project_id,
                    row.author_id,
                    row.service_account_id,
                    row.job_type,
                    RUNNING if row.running else row.settled_state,
                )
                for row in rows
            }
            about = select(section.c.run_id, section.c.body).where(
                among(connection, section.c.run_id, owners), section.c.name.in_(("run", "machine"))
            )
            for run_id, body in connection.execute(about):
                marks = json.loads(body)
                if marks.get("simulated") or marks.get("imported_from"):
                    owners.pop(run_id, None)
        return owners

    def devices(self, run_ids: Collection[int]) -> dict[int, list[UsedDevice]]:
        """The devices that runs used, or may have used, by run."""
        statement = select(
            run_device.c.run_id,
            run_device.c.host,
            run_device.c.device_id,
            run_device.c.position,
            run_device.c.used,
            func.coalesce(device.c.model, "").label("model"),
            device.c.identity,
        ).join(device, device.c.id == run_device.c.device_id)
        devices: dict[int, list[UsedDevice]] = defaultdict(list)
        with self._database.read() as connection:
            rows = connection.execute(
                statement.where(among(connection, run_device.c.run_id, run_ids), _may_use())
            )
            for row in rows:
                devices[row.run_id].append(UsedDevice(**row._asdict()))
        return devices

    def key_lists(self, run_ids: Collection[int]) -> dict[int, tuple[int, ...]]:
        """The numbers of the key lists of each lane of some runs."""
        statement = (
            select(writer.c.lane_id, writer_schema.c.schema_id)
            .join(writer, writer.c.id == writer_schema.c.writer_id)
            .distinct()
        )
        lists: dict[int, list[int]] = defaultdict(list)
        with self._database.read() as connection:
            for lane, number in connection.execute(
                statement.where(among(connection, writer.c.run_id, run_ids))
            ):
                lists[lane].append(number)
        return {lane: tuple(sorted(numbers)) for lane, numbers in lists.items()}

    def covered(self, day: str, run_ids: Collection[int]) -> dict[int, dict[str, tuple[Interval, ...]]]:
        """The covered time of runs by host."""
        covered: dict[int, dict[str, tuple[Interval, ...]]] = defaultdict(dict)
        table = usage_host_run_day
        with self._database.read() as connection:
            statement = select(table.c.run_id, table.c.host, table.c.covered).where(
                table.c.day == day, among(connection, table.c.run_id, run_ids)
            )
            for run_id, host, text in connection.execute(statement):
                covered[run_id][host] = _intervals(text)
        return covered

    def users(self, day: str, hosts: Collection[str], device_ids: Collection[int]) -> Users:
        """The runs that were on hosts on a day, and those that used devices then."""
        users = Users(defaultdict(set), defaultdict(set))
        of_host = usage_host_run_day.c
        names = sorted(hosts)
        with self._database.read() as connection:
            for first in range(0, len(names), 500):
                statement = select(of_host.host, of_host.run_id).where(
                    of_host.host.in_(names[first : first + 500]), of_host.day == day
                )
                for host, run_id in connection.execute(statement):
                    users.hosts[host].add(run_id)
            on_host = and_(of_host.run_id == run_device.c.run_id, of_host.host == run_device.c.host)
            devices = (
                select(run_device.c.device_id, run_device.c.run_id, run_device.c.host)
                .join(usage_host_run_day, on_host)
                .where(of_host.day == day, among(connection, run_device.c.device_id, device_ids), _may_use())
            )
            for device_id, run_id, host in connection.execute(devices):
                users.devices[device_id].add((run_id, host))
        return users

    def final_days(self, days: Collection[str]) -> set[tuple[int, str]]:
        """The runs and days whose figures stay."""
        statement = select(usage_run_day.c.run_id, usage_run_day.c.day).where(
            usage_run_day.c.day.in_(days), usage_run_day.c.final
        )
        with self._database.read() as connection:
            return {(run_id, day) for run_id, day in connection.execute(statement)}

    def put_covered(self, rows: Sequence[HostRunDay]) -> None:
        """Keep the covered time of runs. Their other figures follow."""

        def work(connection: Connection) -> None:
            statement = insert(connection, usage_host_run_day)
            new_values = {name: statement.excluded[name] for name in ("covered", "covered_ms")}
            keys = ["run_id", "day", "host"]
            connection.execute(
                statement.on_conflict_do_update(index_elements=keys, set_=new_values),
                [_host_row(row) for row in rows],
            )

        if rows:
            self._database.write(work, durable=False)

    def put(
        self, days: Sequence[RunDay], hosts: Sequence[HostRunDay], devices: Sequence[DeviceRunDay], today: str
    ) -> None:
        """Keep the figures of runs. What a run of an earlier day belonged to then stays."""

        def work(connection: Connection) -> None:
            before = _known_owners(connection, {row.owner.run_id for row in days}, {row.day for row in days})
            rows = [
                {
                    **asdict(row.owner),
                    **(before.get((row.owner.run_id, row.day), {}) if row.day < today else {}),
                    "state": row.owner.state,
                    "day": row.day,
                    "tracked_ms": row.tracked_ms,
                    "host_ms": row.host_ms,
                    "final": False,
                }
                for row in days
            ]
            put_rows(connection, usage_run_day, rows)
            put_rows(connection, usage_host_run_day, [_host_row(row) for row in hosts])
            put_rows(connection, usage_device_run_day, [_device_row(row) for row in devices])
            for state, run_ids in _by_state(days).items():
                ended = update(usage_run_day).where(
                    among(connection, usage_run_day.c.run_id, run_ids), usage_run_day.c.state != state
                )
                connection.execute(ended.values(state=state))

        if days:
            self._database.write(work, durable=False)

    def settle_states(self, now_ms: int) -> None:
        """Note how runs ended that were running when their days were computed."""

        def work(connection: Connection) -> None:
            still = select(usage_run_day.c.run_id).where(usage_run_day.c.state == RUNNING).distinct()
            over = or_(run.c.alive_until_ms.is_(None), run.c.alive_until_ms < now_ms)
            ended = select(run.c.id, run.c.settled_state).where(run.c.id.in_(still), over)
            for run_id, state in connection.execute(ended).all():
                rows = update(usage_run_day).where(usage_run_day.c.run_id == run_id)
                connection.execute(rows.values(state=state))

        self._database.write(work, durable=False)

    def mark_final(self, before: str) -> int:
        """Let the figures of days before this one stay as they are; returns how many rows."""
        rows = update(usage_run_day).where(usage_run_day.c.day < before, ~usage_run_day.c.final)
        return self._database.write(lambda connection: connection.execute(rows.values(final=True)).rowcount)

    @in_transaction
    def forget_days(self, connection: Connection, first: str, last: str) -> None:
        """Remove the figures of days to compute again; final ones and those of runs deleted for good stay."""
        final = select(usage_run_day.c.run_id).where(usage_run_day.c.final)
        for table in (usage_device_run_day, usage_host_run_day):
            final_runs = final.where(usage_run_day.c.day == table.c.day)
            range_ = and_(table.c.day >= first, table.c.day <= last)
            has_run = table.c.run_id.in_(select(run.c.id))
            connection.execute(delete(table).where(range_, has_run, table.c.run_id.not_in(final_runs)))

    def forget_runs(self, day: str, run_ids: Collection[int]) -> None:
        """Remove the figures of runs that do not count, such as imported ones: they were not known to be."""

        def work(connection: Connection) -> None:
            final = select(usage_run_day.c.run_id).where(usage_run_day.c.final, usage_run_day.c.day == day)
            uncounted_runs = select(run.c.id).where(
                among(connection, run.c.id, run_ids), run.c.id.not_in(final)
            )
            for table in (usage_device_run_day, usage_host_run_day, usage_run_day):
                connection.execute(
                    delete(table).where(table.c.day == day, table.c.run_id.in_(uncounted_runs))
                )

        if run_ids:
            self._database.write(work, durable=False)

    def put_storage(self, rows: Sequence[StorageRow]) -> None:
        """Keep what projects store at the beginning of a day."""

        def work(connection: Connection) -> None:
            put_rows(connection, storage_day, [asdict(row) for row in rows])

        if rows:
            self._database.write(work)

    def copy_names(self) -> None:
        """Copy the names that usage refers to, before what they name is gone."""
        self._database.write(copy_names, durable=False)

    def entities(self) -> list[int | None]:
        """The teams and users that own projects; None: projects of before accounts."""
        with self._database.read() as connection:
            return list(connection.execute(select(project.c.entity_id).distinct()).scalars())

    def last_storage_day(self) -> str | None:
        """The newest day with a snapshot of storage."""
        with self._database.read() as connection:
            return connection.execute(select(func.max(storage_day.c.day))).scalar()


@dataclass(frozen=True, slots=True)
class Users:
    """The runs on hosts, and the runs, with their hosts, that use devices."""

    hosts: dict[str, set[int]]
    devices: dict[int, set[tuple[int, str]]]


def _host_row(row: HostRunDay) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "day": row.day,
        "host": row.host,
        "covered": json.dumps([time for interval in row.covered for time in interval]),
        "covered_ms": sum(end - start for start, end in row.covered),
        "measured_mj": row.measured_mj,
        "unknown_ms": row.unknown_ms,
        "cpu_ms": row.cpu_ms,
        "shared_cpu_ms": row.shared_cpu_ms,
        "shared_mj": row.shared_mj,
    }


def _device_row(row: DeviceRunDay) -> dict[str, Any]:
    return {
        name: getattr(row, name) for name in DeviceRunDay.__dataclass_fields__
    }  # `asdict` takes 10 times as long


def _may_use() -> ColumnElement[bool]:
    return or_(run_device.c.used.is_(None), run_device.c.used)


def _intervals(text: str) -> tuple[Interval, ...]:
    times = json.loads(text)
    return tuple(zip(times[::2], times[1::2], strict=True))


def _by_state(days: Iterable[RunDay]) -> dict[str, set[int]]:
    lanes: dict[str, set[int]] = defaultdict(set)
    for row in days:
        lanes[row.owner.state].add(row.owner.run_id)
    return lanes


def _known_owners(
    connection: Connection, run_ids: Collection[int], days: Collection[str]
) -> dict[tuple[int, str], dict[str, Any]]:
    """Whose runs were on days that were computed before."""
    names = ("entity_id", "project_id", "author_id", "service_account_id", "job_type")
    statement = select(usage_run_day).where(
        among(connection, usage_run_day.c.run_id, run_ids), usage_run_day.c.day.in_(days)
    )
    return {
        (row.run_id, row.day): {name: getattr(row, name) for name in names}
        for row in connection.execute(statement)
    }


def in_days(column: ColumnElement[str], first: str, last: str) -> ColumnElement[bool]:
    """Return whether a day is in a range, both ends included."""
    return and_(column >= first, column <= last)
