"""The table of sweeps."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.sweeps import sweep, sweep_run
from runvitals.server.database.text import check_integers
from runvitals.server.sweeps.storage.rows import (
    OVER,
    UNENDED,
    NewSweep,
    State,
    Sweep,
    SweepConflict,
    UnknownSweep,
)

MAX_SWEEPS: Final = 10_000
"""In a project."""
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz0123456789"
_NAME_LENGTH: Final = 8
_MAX_TEXT: Final = 10_000


class SweepTable(StoredTable):
    """The table of sweeps.

    Example:
        >>> made = metadata_store.sweeps.sweeps.create(NewSweep(3, source, configuration, seed=7), now_ms)
        >>> made.state
        'pending'
    """

    def get(self, sweep_id: int) -> Sweep:
        """Return a sweep, or raise UnknownSweep."""
        with self._database.read() as connection:
            return _read_sweep(connection, sweep_id)

    def named(self, project_id: int, name: str) -> Sweep | None:
        """A sweep of a project; None if there is none."""
        conditions = (sweep.c.project_id == project_id, sweep.c.name == plain_text(name))
        with self._database.read() as connection:
            row = connection.execute(select(sweep).where(*conditions)).first()
        return None if row is None else _sweep(row)

    def of_project(self, project_id: int, skip: int = 0, limit: int = 100) -> tuple[list[Sweep], int]:
        """A page of the sweeps of a project, the newest first, and how many there are."""
        mine = sweep.c.project_id == project_id
        page = select(sweep).where(mine).order_by(sweep.c.id.desc()).offset(skip).limit(limit)
        count = select(func.count()).select_from(sweep).where(mine)
        with self._database.read() as connection:
            rows = [_sweep(row) for row in connection.execute(page)]
            return rows, int(connection.execute(count).scalar_one())

    def with_unended_runs(self) -> list[Sweep]:
        """The sweeps of all projects with runs that have not ended, the first one first."""
        unended = select(sweep_run.c.sweep_id).where(sweep_run.c.state.in_(UNENDED))
        statement = select(sweep).where(sweep.c.id.in_(unended)).order_by(sweep.c.id)
        with self._database.read() as connection:
            return [_sweep(row) for row in connection.execute(statement)]

    @in_transaction
    def create(self, connection: Connection, new: NewSweep, now_ms: int) -> Sweep:
        """Create a sweep, or raise LimitReached when the project has too many."""
        refusal = f"the project has {MAX_SWEEPS:,} sweeps: delete some"
        in_project = sweep.c.project_id == new.project_id
        check_room(connection, sweep, MAX_SWEEPS, refusal, in_project, owner_id=new.project_id)
        row = {
            **{name: getattr(new, name) for name in NewSweep.__dataclass_fields__},
            **_texts(display_name=new.display_name, description=new.description),
            "name": _free_name(connection, new.project_id),
            "state": "pending",
            "places": 0,
            "created_ms": now_ms,
            "changed_ms": now_ms,
        }
        added = connection.execute(insert(sweep).values(row).returning(sweep.c.id)).scalar_one()
        return _read_sweep(connection, added)

    def configure(
        self, sweep_id: int, source: str, configuration: str, now_ms: int, **texts: str | None
    ) -> Sweep:
        """Replace the configuration of runs to come, and given texts, or raise UnknownSweep."""
        values = {"source": source, "configuration": configuration, "changed_ms": now_ms, **_texts(**texts)}
        return self._change(sweep_id, values)

    def describe(self, sweep_id: int, now_ms: int, **texts: str | None) -> Sweep:
        """Change the `display_name` or `description`, or raise UnknownSweep."""
        return self._change(sweep_id, {"changed_ms": now_ms, **_texts(**texts)})

    @in_transaction
    def set_state(
        self, connection: Connection, sweep_id: int, state: State, now_ms: int, allowed: Sequence[State]
    ) -> Sweep:
        """Bring a sweep to a state. One that is in it already stays as it is.

        Args:
            allowed: the states from which that is possible.

        Raises:
            UnknownSweep: there is none.
            SweepConflict: it is in another state.
        """
        changed = (
            update(sweep)
            .where(sweep.c.id == sweep_id, sweep.c.state.in_(allowed))
            .values(state=state, changed_ms=now_ms)
        )
        moved = connection.execute(changed).rowcount
        row = _read_sweep(connection, sweep_id)
        if not moved and row.state != state:
            raise SweepConflict(f"the sweep {row.name!r} is {row.state}: it cannot become {state}")
        return row

    def finish(self, sweep_id: int, now_ms: int) -> None:
        """Note that a sweep needs no more runs, unless somebody has ended it before."""
        done = (
            update(sweep)
            .where(sweep.c.id == sweep_id, sweep.c.state.not_in(OVER))
            .values(state="finished", changed_ms=now_ms)
        )
        self._database.write(lambda connection: connection.execute(done))

    def delete(self, sweep_id: int) -> None:
        """Delete a sweep, whose runs stay, or raise UnknownSweep."""
        statement = delete(sweep).where(sweep.c.id == sweep_id)
        if not self._database.write(lambda connection: connection.execute(statement).rowcount):
            raise UnknownSweep(f"there is no sweep with the id {sweep_id}")

    @in_transaction
    def _change(self, connection: Connection, sweep_id: int, values: dict[str, Any]) -> Sweep:
        connection.execute(update(sweep).where(sweep.c.id == sweep_id).values(values))
        return _read_sweep(connection, sweep_id)


def _texts(**texts: str | None) -> dict[str, str | None]:
    return {name: None if text is None else plain_text(text)[:_MAX_TEXT] for name, text in texts.items()}


def _free_name(connection: Connection, project_id: int) -> str:
    while True:
        name = random_name()
        statement = select(sweep.c.id).where(sweep.c.project_id == project_id, sweep.c.name == name)
        if connection.execute(statement).first() is None:
            return name


def random_name() -> str:
    """A name that is unlikely to be taken: eight letters and digits, as wandb has them."""
    return "".join(secrets.choice(_LETTERS) for _ in range(_NAME_LENGTH))


def _read_sweep(connection: Connection, sweep_id: int) -> Sweep:
    check_integers("sweep", id=sweep_id)
    row = connection.execute(select(sweep).where(sweep.c.id == sweep_id)).first()
    if row is None:
        raise UnknownSweep(f"there is no sweep with the id {sweep_id}")
    return _sweep(row)


def _sweep(row: Row[Any]) -> Sweep:
    return Sweep(**row._asdict())
