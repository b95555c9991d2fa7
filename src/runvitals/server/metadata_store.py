"""`MetadataStore` and `open_metadata_store`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Connection

from runvitals.server.access.storage.tokens import TokenTable
from runvitals.server.alerts.storage.alert_store import AlertStore
from runvitals.server.artifacts.storage.artifact_store import ArtifactStore
from runvitals.server.artifacts.storage.run_lineage import RunLineageTable
from runvitals.server.database.database import Database, StoredTable
from runvitals.server.database.issued_ids import IssuedIds
from runvitals.server.database.migration import migrate
from runvitals.server.database.server_link import Message, ServerLink
from runvitals.server.doors.mlflow.storage.experiments import MlflowExperimentTable
from runvitals.server.doors.wandb.storage.clients import WandbClientTable
from runvitals.server.doors.wandb.storage.report_specs import ReportSpecTable
from runvitals.server.files.storage.mlflow_files import MlflowFileTable
from runvitals.server.files.storage.stored_files import StoredFileTable
from runvitals.server.findings.storage.lost_time_reading import LostTimeReading
from runvitals.server.findings.storage.results import FindingResults
from runvitals.server.projects.storage.projects import ProjectTable
from runvitals.server.projects.storage.routing_rules import RoutingRuleTable
from runvitals.server.registry.storage.alias_requests import AliasRequestTable
from runvitals.server.registry.storage.logged_model_metrics import LoggedModelMetricTable
from runvitals.server.registry.storage.logged_models import LoggedModelTable
from runvitals.server.registry.storage.model_versions import ModelVersionTable
from runvitals.server.registry.storage.registered_models import RegisteredModelTable
from runvitals.server.registry.storage.registries import RegistryTable
from runvitals.server.registry.storage.registry_collections import RegistryCollectionTable
from runvitals.server.registry.storage.registry_members import RegistryMemberTable
from runvitals.server.runs.storage.console import ConsoleTable
from runvitals.server.runs.storage.devices import DeviceTable
from runvitals.server.runs.storage.events import EventTable
from runvitals.server.runs.storage.host_runs import HostRuns
from runvitals.server.runs.storage.media import MediaTable
from runvitals.server.runs.storage.metrics import MetricTable
from runvitals.server.runs.storage.pending_summaries import PendingSummaries
from runvitals.server.runs.storage.run_statistics import RunStatisticsTable
from runvitals.server.runs.storage.runs import RunTable
from runvitals.server.runs.storage.sections import SectionTable
from runvitals.server.runs.storage.writers import WriterTable
from runvitals.server.sweeps.storage.sweep_store import SweepStore
from runvitals.server.usage.storage.read_days import ReadDays
from runvitals.server.usage.storage.usage_store import UsageStore
from runvitals.store.errors import MetadataStoreError, MetadataStoreUnavailable, QueryFailed

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore

T = TypeVar("T")
RECOVERY_HINT = (
    "restore a backup into an empty folder or database, or recover what is readable with "
    "`runvitals store repair`"
)


class MetadataStore(StoredTable):
    """Everything about runs except their samples. All methods are thread-safe.

    Attributes:
        projects, runs, run_statistics, writers, metrics, sections, events, console, media, stored_files,
            devices, routing_rules, tokens, wandb_clients, wandb_report_specs: the tables.
        findings, lost_time: what is wrong with runs, and which device-hours they lost by it.
        usage: what runs used and what it costs.
        read_days: when runs and versions of artifacts were last read.
        pending_summaries: rows that are stored, but not yet in the summaries of their runs.
        host_runs: finds runs by their hosts.
        issued_ids: keeps the ids assigned here and those used in a sample store consistent.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.metrics = MetricTable(database)
        self.pending_summaries = PendingSummaries(database, self.metrics)
        self.projects = ProjectTable(database)
        self.runs = RunTable(database, self.pending_summaries)
        self.run_statistics = RunStatisticsTable(database)
        self.findings = FindingResults(database)
        self.writers = WriterTable(database)
        self.sections = SectionTable(database, self.pending_summaries)
        self.events = EventTable(database)
        self.console = ConsoleTable(database)
        self.media = MediaTable(database)
        self.stored_files = StoredFileTable(database)
        self.devices = DeviceTable(database)
        self.routing_rules = RoutingRuleTable(database)
        self.mlflow_experiments = MlflowExperimentTable(database)
        self.mlflow_files = MlflowFileTable(database)
        self.registered_models = RegisteredModelTable(database)
        self.registries = RegistryTable(database)
        self.registry_collections = RegistryCollectionTable(database)
        self.registry_members = RegistryMemberTable(database, "user")
        self.registry_teams = RegistryMemberTable(database, "team")
        self.alias_requests = AliasRequestTable(database)
        self.model_versions = ModelVersionTable(database)
        self.logged_models = LoggedModelTable(database)
        self.logged_model_metrics = LoggedModelMetricTable(database)
        self.run_lineage = RunLineageTable(database)
        self.host_runs = HostRuns(database)
        self.tokens = TokenTable(database)
        self.wandb_clients = WandbClientTable(database)
        self.wandb_report_specs = ReportSpecTable(database)
        self.issued_ids = IssuedIds(database)
        self.usage = UsageStore(database)
        self.lost_time = LostTimeReading(database)
        self.read_days = ReadDays(database)

    @cached_property
    def accounts(self) -> AccountStore:
        """Users, teams, keys and all else that decides who may do what. Loaded at first use."""
        from runvitals.server.account_store import AccountStore

        return AccountStore(self._database)

    @cached_property
    def artifacts(self) -> ArtifactStore:
        """Versions of files that runs make and use."""
        return ArtifactStore(self._database)

    @cached_property
    def alerts(self) -> AlertStore:
        """The alert rules, automations, destinations and notifications."""
        return AlertStore(self._database)

    @cached_property
    def sweeps(self) -> SweepStore:
        """Searches for the best parameters over many runs."""
        return SweepStore(self._database)

    def join_servers(self, on_message: Callable[[Message], None], on_gap: Callable[[], None]) -> ServerLink:
        """Join the servers that share this store; the caller starts and closes the thread of the link."""
        link = ServerLink(self._database, on_message, on_gap)
        self.pending_summaries.server = link.number
        return link

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; returns its result."""
        return self._database.write(work)

    def in_one_transaction(self, work: Callable[[], T]) -> T:
        """Run `work`, whose changes through this store are made together or not at all; returns its result.

        It may be run again, so it must change nothing else, and wait for nothing: others wait for it.
        """
        return self._database.in_one_transaction(work)

    @property
    def is_local(self) -> bool:
        """Whether it is a file of this machine, not a database that many servers use."""
        return self._database.is_sqlite

    def problem(self) -> str | None:
        """Why writes would be lost: the file was deleted or replaced; None if it was not. Thread-safe."""
        return self._database.problem()

    @property
    def write_problem(self) -> str | None:
        """Why the last write failed, for a minute. Thread-safe."""
        return self._database.write_problem

    def refresh_statistics(self) -> None:
        """Update SQLite's statistics for its query planner, about once a day; PostgreSQL does so itself."""
        if self._database.is_sqlite:
            self._database.write(lambda connection: connection.exec_driver_sql("ANALYZE"), durable=False)

    def close(self) -> None:
        """Close all connections. Closing twice has no effect."""
        self._database.close()

    def __enter__(self) -> MetadataStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_metadata_store(address: str) -> MetadataStore:
    """Open the metadata store at an address; creates or migrates it first if needed.

    Any number of processes may have it open.

    Args:
        address: `postgresql://user:password@host/name` (a database used for nothing else),
            `sqlite:////absolute/path`, or the path of a SQLite file, which is created if missing; its folder
            must exist, on a local disk.

    Raises:
        ValueError: unsupported address.
        MetadataStoreError: the database could not be opened, or a later version of runvitals created it.
    """
    database = Database(address)
    try:
        migrate(database)
        database.watch_file()
    except QueryFailed as error:
        database.close()
        hint = "" if isinstance(error, MetadataStoreUnavailable) else f": {RECOVERY_HINT}"
        raise MetadataStoreError(
            f"could not open the metadata store {database.name}: {error}{hint}"
        ) from error
    except BaseException:
        database.close()
        raise
    return MetadataStore(database)
