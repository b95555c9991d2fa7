"""`open_metadata_store`: the catalogue as one object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError, OperationalError

from runvitals.store.metadata.console import ConsoleTable
from runvitals.store.metadata.database import Database, MetadataStoreError
from runvitals.store.metadata.devices import DeviceTable
from runvitals.store.metadata.events import EventTable
from runvitals.store.metadata.issued_ids import IssuedIds
from runvitals.store.metadata.metrics import MetricTable
from runvitals.store.metadata.migration import migrate
from runvitals.store.metadata.projects import ProjectTable
from runvitals.store.metadata.runs import RunTable
from runvitals.store.metadata.sections import SectionTable
from runvitals.store.metadata.tokens import TokenTable
from runvitals.store.metadata.writers import WriterTable

T = TypeVar("T")
WAY_OUT = "put it back from a backup, or have what can be read of it brought back by `runvitals store repair`"


class MetadataStore:
    """Everything about runs but their samples. All methods may be called from any thread.

    Attributes:
        projects, runs, writers, metrics, sections, events, console, devices, tokens: what there is, noun by
            noun.
        numbers: what keeps its numbers and those in a store of samples the same.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.projects = ProjectTable(database)
        self.runs = RunTable(database)
        self.writers = WriterTable(database)
        self.metrics = MetricTable(database)
        self.sections = SectionTable(database)
        self.events = EventTable(database)
        self.console = ConsoleTable(database)
        self.devices = DeviceTable(database)
        self.tokens = TokenTable(database)
        self.numbers = IssuedIds(database)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do some work on the tables themselves in one transaction; the result of it."""
        return self._database.write(work)

    def problem(self) -> str | None:
        """Why nothing that is written would last: its file was deleted or replaced. For any thread."""
        return self._database.problem()

    def refresh_statistics(self) -> None:
        """Tell SQLite how its values are spread; once a day will do. PostgreSQL looks for itself."""
        if self._database.is_sqlite:
            self._database.write(lambda connection: connection.exec_driver_sql("ANALYZE"), durable=False)

    def close(self) -> None:
        """Let go of all connections. Closing twice does nothing."""
        self._database.close()

    def __enter__(self) -> MetadataStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_metadata_store(address: str) -> MetadataStore:
    """The catalogue at an address, made or brought to this version's form first.

    Any number of processes may have it open.

    Args:
        address: `postgresql://user:password@host/name` (a database of its own), `sqlite:////absolute/path`,
            or the path of a SQLite file, which need not be there yet; its folder must, on a local disk.

    Raises:
        ValueError: an address of another kind.
        CatalogueError: it cannot be reached, or a later version of runvitals made it.
    """
    database = Database(address)
    try:
        migrate(database)
        database.opened()
    except DatabaseError as error:
        database.close()
        way_out = "" if isinstance(error, OperationalError) else f": {WAY_OUT}"
        raise MetadataStoreError(
            f"the catalogue {database.name} cannot be opened: {error.orig}{way_out}"
        ) from error
    except BaseException:
        database.close()
        raise
    return MetadataStore(database)
