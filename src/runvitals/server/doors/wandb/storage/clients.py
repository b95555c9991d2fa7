"""The number of lines that wandb's clients have sent: what a client repeats is not stored again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Connection, select

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, in_transaction, put_rows
from runvitals.server.database.tables.runs import wandb_client
from runvitals.server.runs.storage.run_locks import lock_known_runs


@dataclass(frozen=True, slots=True)
class WandbClient:
    """A client that logs to a run: a process, or several one after the other that resume the run.

    Args:
        client: names it among the clients of a run that several processes log to; otherwise empty.
        host: of the process that writes now.
        started_ms: when that process began, by the server's clock.
        history_lines, event_lines, console_lines: how many lines of each kind are stored.
        row_ms: time of the last stored row.
        ended: the process has said that it is complete.
    """

    run_id: int
    client: str
    host: str
    started_ms: int
    history_lines: int = 0
    event_lines: int = 0
    console_lines: int = 0
    row_ms: int = 0
    ended: bool = False


class WandbClientTable(StoredTable):
    """The table of these clients."""

    def of_run(self, run_id: int) -> list[WandbClient]:
        """Return the clients of a run, in the order in which they began."""
        mine = select(wandb_client).where(wandb_client.c.run_id == run_id)
        with self._database.read() as connection:
            rows = connection.execute(mine.order_by(wandb_client.c.started_ms, wandb_client.c.client))
            return [WandbClient(**row._asdict()) for row in rows]

    def get(self, run_id: int, client: str) -> WandbClient | None:
        """Return a client of a run; None if it is unknown."""
        client_name = plain_text(client)
        mine = select(wandb_client).where(
            wandb_client.c.run_id == run_id, wandb_client.c.client == client_name
        )
        with self._database.read() as connection:
            row = connection.execute(mine).first()
        return None if row is None else WandbClient(**row._asdict())

    @in_transaction
    def put(self, connection: Connection, state: WandbClient) -> None:
        """Store the state of a client. Durable.

        Raises:
            UnknownRun: the run does not exist.
        """
        row: dict[str, Any] = {
            **asdict(state),
            "client": plain_text(state.client),
            "host": plain_text(state.host),
        }
        lock_known_runs(connection, {state.run_id})
        put_rows(connection, wandb_client, [row])
