"""Services for the routes of a server.

It loads nothing of what it names: the local page needs no database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    import anyio
    from starlette.applications import Starlette

    from runvitals.base.once import Once
    from runvitals.server.access.control import AccessControl
    from runvitals.server.access.enforcement.bound_cursors import BoundCursors
    from runvitals.server.access.enforcement.recorded_changes import RecordedChanges
    from runvitals.server.account_services import AccountServices
    from runvitals.server.alerts.alerting import Alerting
    from runvitals.server.alerts.delivery.channels import Channels
    from runvitals.server.buckets.team_buckets import TeamBuckets
    from runvitals.server.charts.overlay.kept_means import KeptMeans
    from runvitals.server.doors.mlflow.door import MlflowDoor
    from runvitals.server.doors.otlp.receiver import OtlpReceiver
    from runvitals.server.doors.project_rules import ProjectRules
    from runvitals.server.doors.promql.series_source import PromqlServer
    from runvitals.server.doors.recording import DoorRecorder
    from runvitals.server.doors.remote_write.receiver import RemoteWrite
    from runvitals.server.doors.wandb.resuming_clients import ResumingClients
    from runvitals.server.files.received_files import ReceivedFiles
    from runvitals.server.findings.kept_findings import KeptFindings
    from runvitals.server.findings.run_findings import FindingSource
    from runvitals.server.health.server_health import ServerHealth
    from runvitals.server.http.open_streams import OpenStreams
    from runvitals.server.http.response_memory import ResponseMemory
    from runvitals.server.library.run_library import Library
    from runvitals.server.library.stored.run_library import StoredLibrary
    from runvitals.server.live.feed import RunFeeds
    from runvitals.server.metadata_store import MetadataStore
    from runvitals.server.outside_services import OutsideServices
    from runvitals.server.reports.kept_panels import KeptPanels
    from runvitals.server.usage.payments import PaymentProvider
    from runvitals.server.usage.reports import UsageReports
    from runvitals.server.usage.statements import Statements
    from runvitals.store.samples.interface import SampleStore


@dataclass(slots=True, kw_only=True)
class Services:
    """Services for the routes of every server.

    Attributes:
        access: decides who may do what; None on the local server, where everyone may do everything.
        changes: makes and records changes of runs and projects; None on the local server.
        cursors: binds cursors to who gets them; None on the local server.
        closing: is set when the server ends.
        response_memory: what responses that are being sent hold.
        findings: what is wrong with runs.
        kept_means: what charts of groups have read of runs.
    """

    library: Library
    closing: anyio.Event
    feeds: RunFeeds
    open_streams: OpenStreams
    response_memory: ResponseMemory
    findings: FindingSource
    kept_means: KeptMeans
    access: AccessControl | None = None
    changes: RecordedChanges | None = None
    cursors: BoundCursors | None = None


@dataclass(slots=True, kw_only=True)
class SharedServices(Services):
    """Services for the routes of a shared server.

    Attributes:
        clock: the time now, ms UTC.
        files: the files that runs send; None: they are not accepted.
        team_buckets: the file stores of teams with a bucket of their own.
        payments: None: nothing is paid on the page.
        kept_panels: what requests for panels of reports share.
    """

    library: StoredLibrary
    findings: KeptFindings
    access: AccessControl
    changes: RecordedChanges
    cursors: BoundCursors
    clock: Callable[[], int]
    sample_store: SampleStore
    metadata_store: MetadataStore
    health: ServerHealth
    account_services: AccountServices
    outside_services: OutsideServices
    files: ReceivedFiles | None
    team_buckets: TeamBuckets
    channels: Channels
    alerting: Alerting
    usage_reports: UsageReports
    statements: Statements
    payments: PaymentProvider | None
    kept_panels: Once[KeptPanels]
    door_recorder: DoorRecorder
    project_rules: ProjectRules
    mlflow_door: Once[MlflowDoor]
    resuming_clients: ResumingClients
    promql: Once[PromqlServer]
    remote_write: Once[RemoteWrite]
    otlp: Once[OtlpReceiver]


def services_of(request: Request) -> Services:
    """The services of the application that got a request."""
    return app_services(request.app)


def app_services(app: Starlette) -> Services:
    """The services of an application."""
    services: Services = app.state.services
    return services


def shared_services_of(request: Request) -> SharedServices:
    """The services of the shared server that got a request."""
    services: SharedServices = request.app.state.services
    return services
