"""Reads the figures of a range of days, for reports and exports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from sqlalchemy import and_, func, select

from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.tables.accounts import entity, service_account
from runvitals.server.database.tables.artifacts import artifact_collection, artifact_version
from runvitals.server.database.tables.findings import finding, judgement
from runvitals.server.database.tables.runs import project, run
from runvitals.server.database.tables.sweeps import sweep, sweep_run
from runvitals.server.database.tables.usage import (
    cost_centre,
    cost_centre_assignment,
    storage_day,
    usage_device_run_day,
    usage_host_run_day,
    usage_ingest_day,
    usage_request_day,
    usage_run_day,
)
from runvitals.server.usage.storage.figures import StorageRow, in_days
from runvitals.server.usage.storage.names import copied_names, present_names


@dataclass(frozen=True, slots=True)
class StoredTimes:
    """When the oldest and newest of something that is stored was made, ms UTC, and the day of the last read.

    `read_day`: see `ReadDays`.
    """

    started_ms: int | None = None
    last_ms: int | None = None
    read_day: int | None = None

    def with_others(self, other: StoredTimes) -> StoredTimes:
        """Return the times of both together."""
        started = [ms for ms in (self.started_ms, other.started_ms) if ms is not None]
        last = [ms for ms in (self.last_ms, other.last_ms) if ms is not None]
        days = [day for day in (self.read_day, other.read_day) if day is not None]
        return StoredTimes(min(started, default=None), max(last, default=None), max(days, default=None))


@dataclass(frozen=True, slots=True)
class UsedDay:
    """A day of a run, and whose it was then."""

    run_id: int
    day: str
    entity_id: int | None
    project_id: int
    author_id: int | None
    service_account_id: int | None
    job_type: str
    state: str
    tracked_ms: int
    host_ms: int


@dataclass(frozen=True, slots=True)
class UsedDevices:
    """The devices of one model that a run used on a day, added up; `used` null: it may have used them."""

    run_id: int
    day: str
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
class ReceivedDay:
    """Bytes and points received of a run on a day, and its owner; no project if it is gone."""

    run_id: int
    day: str
    bytes: int
    points: int
    entity_id: int | None
    project_id: int | None
    author_id: int | None
    service_account_id: int | None
    job_type: str | None


@dataclass(frozen=True, slots=True)
class RequestsOfDay:
    """How many requests a user or service account made on a day, and the team of the service account."""

    owner_kind: str
    owner_id: int
    day: str
    requests: int
    team_id: int | None


@dataclass(frozen=True, slots=True)
class LostSpan:
    """A time in which a run lost device-hours by a finding."""

    run_id: int
    from_ms: int
    to_ms: int
    hours: float


class UsageReading(StoredTable):
    """Reads usage. Days are included at both ends."""

    def run_days(self, first: str, last: str) -> list[UsedDay]:
        """Return what runs used, by day, from one day to another."""
        names = [usage_run_day.c[name] for name in UsedDay.__dataclass_fields__]
        statement = select(*names).where(in_days(usage_run_day.c.day, first, last))
        with self._database.read() as connection:
            return [UsedDay(*row) for row in connection.execute(statement)]

    def devices(self, first: str, last: str) -> list[UsedDevices]:
        """Return what runs used of devices, by day, from one day to another."""
        column = usage_device_run_day.c
        keys = (column.run_id, column.day, column.model, column.used)
        sums = [
            func.coalesce(func.sum(column[name]), 0)
            for name in (
                "share_ms",
                "busy_ms",
                "idle_ms",
                "measured_mj",
                "estimated_mj",
                "unknown_ms",
                "hung_ms",
            )
        ]
        statement = select(*keys, *sums).where(in_days(column.day, first, last)).group_by(*keys)
        with self._database.read() as connection:
            return [UsedDevices(*row[:4], *map(int, row[4:])) for row in connection.execute(statement)]

    def device_time(self, run_ids: Collection[int]) -> list[tuple[int, str, str, int]]:
        """Return the time of the devices of runs, ms: run, model, the last day and the time."""
        column = usage_device_run_day.c
        sums = (func.max(column.day), func.sum(column.share_ms))
        with self._database.read() as connection:
            mine = among(connection, column.run_id, run_ids)
            statement = select(column.run_id, column.model, *sums).where(mine)
            rows = connection.execute(statement.group_by(column.run_id, column.model)).all()
            return [(run_id, model, day, int(time)) for run_id, model, day, time in rows]

    def lost_time(self, from_ms: int, until_ms: int) -> list[LostSpan]:
        """Return in which times runs lost device-hours that overlap a range of times."""
        to_ms = func.coalesce(finding.c.to_ms, judgement.c.up_to_ms)
        statement = (
            select(finding.c.run_id, finding.c.from_ms, to_ms, finding.c.lost_hours)
            .join(judgement, judgement.c.run_id == finding.c.run_id)
            .where(finding.c.lost_hours > 0, finding.c.from_ms < until_ms, to_ms > from_ms)
        )
        with self._database.read() as connection:
            return [LostSpan(*row) for row in connection.execute(statement)]

    def host_energy(self, first: str, last: str) -> dict[tuple[int, str], int]:
        """The energy of the hosts themselves in mJ, by run and day.

        Runs that were on a host at the same time share its energy of that time by the CPU time of their
        processes in it, added up for the day; equally if that is not known of all of them.
        """
        column = usage_host_run_day.c
        names = ("run_id", "day", "host", "measured_mj", "shared_mj", "shared_cpu_ms")
        statement = (
            select(*(column[name] for name in names))
            .where(in_days(column.day, first, last), column.measured_mj > 0)
            .order_by(column.day, column.host, column.run_id)
        )
        millijoules: dict[tuple[int, str], int] = defaultdict(int)
        shared: dict[tuple[str, str], list[tuple[int, int, int | None]]] = defaultdict(list)
        with self._database.read() as connection:
            for run_id, day, host, energy, of_shared, cpu_ms in connection.execute(statement):
                millijoules[run_id, day] += energy - (of_shared or 0)
                if of_shared:
                    shared[day, host].append((run_id, of_shared, cpu_ms))
        for (day, _), rows in shared.items():
            energies = by_cpu_time([(energy, cpu_ms) for _, energy, cpu_ms in rows])
            for (run_id, _, _), energy in zip(rows, energies, strict=True):
                millijoules[run_id, day] += energy
        return millijoules

    def cpu_time(self, first: str, last: str) -> dict[tuple[int, str], int]:
        """The CPU time of the processes of runs, ms, by run and day, as far as it is known."""
        column = usage_host_run_day.c
        statement = (
            select(column.run_id, column.day, func.sum(column.cpu_ms))
            .where(in_days(column.day, first, last), column.cpu_ms.is_not(None))
            .group_by(column.run_id, column.day)
        )
        with self._database.read() as connection:
            return {(run_id, day): int(time) for run_id, day, time in connection.execute(statement)}

    def received(self, first: str, last: str) -> list[ReceivedDay]:
        """Return what runs sent, by day, from one day to another."""
        owner = (run.c.entity_id, run.c.project_id, run.c.author_id, run.c.service_account_id, run.c.job_type)
        column = usage_ingest_day.c
        statement = (
            select(column.run_id, column.day, column.bytes, column.points, *owner)
            .outerjoin(run, run.c.id == column.run_id)
            .where(in_days(column.day, first, last))
        )
        with self._database.read() as connection:
            return [ReceivedDay(*row) for row in connection.execute(statement)]

    def requests(self, first: str, last: str) -> list[RequestsOfDay]:
        """Return the requests of users and service accounts, by day, from one day to another."""
        column = usage_request_day.c
        owned = and_(column.owner_kind == "service_account", service_account.c.id == column.owner_id)
        statement = (
            select(column.owner_kind, column.owner_id, column.day, column.requests, service_account.c.team_id)
            .outerjoin(service_account, owned)
            .where(in_days(column.day, first, last))
        )
        with self._database.read() as connection:
            return [RequestsOfDay(*row) for row in connection.execute(statement)]

    def storage(self, first: str, last: str) -> list[StorageRow]:
        """Return what projects stored, by day, from one day to another."""
        columns = [storage_day.c[name] for name in StorageRow.__dataclass_fields__]
        statement = select(*columns).where(in_days(storage_day.c.day, first, last))
        with self._database.read() as connection:
            return [StorageRow(*row) for row in connection.execute(statement)]

    def newest_storage(self) -> list[StorageRow]:
        """Return the storage of projects at the beginning of the newest day that was noted."""
        columns = [storage_day.c[name] for name in StorageRow.__dataclass_fields__]
        newest = select(func.max(storage_day.c.day)).scalar_subquery()
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).where(storage_day.c.day == newest))
            return [StorageRow(*row) for row in rows]

    def storage_times(self) -> dict[int | None, StoredTimes]:
        """Return how old what teams and users store is, and when it was last read; `None`: what has no owner.

        Two scans, of all runs and of all versions of artifacts.
        """
        runs = select(
            run.c.entity_id, func.min(run.c.started_ms), func.max(run.c.last_ms), func.max(run.c.read_day)
        ).group_by(run.c.entity_id)
        version = artifact_version.c
        of_project = artifact_collection.join(project, project.c.id == artifact_collection.c.project_id)
        versions = (
            select(
                project.c.entity_id,
                func.min(version.created_ms),
                func.max(version.created_ms),
                func.max(version.read_day),
            )
            .select_from(of_project.join(artifact_version, version.collection_id == artifact_collection.c.id))
            .where(version.state == "committed")
            .group_by(project.c.entity_id)
        )
        times: dict[int | None, StoredTimes] = {}
        with self._database.read() as connection:
            for statement in (runs, versions):
                for owner, *values in connection.execute(statement):
                    times[owner] = times.get(owner, StoredTimes()).with_others(StoredTimes(*values))
        return times

    def names(self) -> Mapping[tuple[str, int], str]:
        """Return names by kind (entity, project, user, service_account) and id; of what is gone, the last."""
        with self._database.read() as connection:
            return {**copied_names(connection), **present_names(connection)}

    def entity_kinds(self) -> dict[str, str]:
        """`team` or `user`, by the name of the entity."""
        with self._database.read() as connection:
            return dict(connection.execute(select(entity.c.name, entity.c.kind)).all())

    def project_owners(self) -> dict[int, int]:
        """The ids of the teams and users that own projects, by project."""
        owned = select(project.c.id, project.c.entity_id).where(project.c.entity_id.is_not(None))
        with self._database.read() as connection:
            return dict(connection.execute(owned).all())

    def cost_centres(self) -> dict[tuple[str, int], list[tuple[str, str | None]]]:
        """By kind (entity or project) and id: from which day on which cost centre pays, ascending."""
        column = cost_centre_assignment.c
        statement = (
            select(column.kind, column.id, column.valid_from, cost_centre.c.code)
            .outerjoin(cost_centre, cost_centre.c.id == column.cost_centre_id)
            .order_by(column.valid_from)
        )
        assignments: dict[tuple[str, int], list[tuple[str, str | None]]] = defaultdict(list)
        with self._database.read() as connection:
            for kind, number, valid_from, code in connection.execute(statement):
                assignments[kind, number].append((valid_from, code))
        return assignments

    def sweeps(self) -> dict[int, str]:
        """The names of the sweeps of runs, by the id of the run."""
        statement = select(sweep_run.c.run_id, sweep.c.name).join(sweep, sweep.c.id == sweep_run.c.sweep_id)
        with self._database.read() as connection:
            return dict(connection.execute(statement.where(sweep_run.c.run_id.is_not(None))).all())

    def run_uids(self, first: str, last: str) -> dict[int, str]:
        """The run ids of runs that were used in these days; runs that are gone are left out."""
        used = select(usage_run_day.c.run_id).where(in_days(usage_run_day.c.day, first, last))
        with self._database.read() as connection:
            return dict(connection.execute(select(run.c.id, run.c.uid).where(run.c.id.in_(used))).all())


def by_cpu_time(shares: Sequence[tuple[int, int | None]]) -> list[int]:
    """Energies that were shared equally, shared anew by CPU times. Their sum stays.

    Example:
        >>> by_cpu_time([(50, 300), (50, 100)]), by_cpu_time([(50, 300), (50, None)])
        ([75, 25], [50, 50])
    """
    times = [0 if time is None else time for _, time in shares]
    if any(time is None for _, time in shares) or not sum(times):
        return [energy for energy, _ in shares]
    total = sum(energy for energy, _ in shares)
    ends = [total * until // sum(times) for until in accumulate(times, initial=0)]
    return [end - start for start, end in pairwise(ends)]
