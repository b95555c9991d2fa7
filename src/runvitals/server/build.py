"""Builds a shared server from its stores and options."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import anyio
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp

from runvitals.base.once import Once
from runvitals.server.access.enforcement.bound_cursors import BoundCursors
from runvitals.server.access.enforcement.recorded_changes import RecordedChanges
from runvitals.server.access.identification.authenticator import KNOWN_WHILE_AWAY_S
from runvitals.server.account_services import AccountServices
from runvitals.server.accounts.passwords import Passwords
from runvitals.server.alerts.alerting import Alerting
from runvitals.server.alerts.delivery.automation_thread import AutomationThread
from runvitals.server.alerts.delivery.channels import Channels
from runvitals.server.alerts.delivery.delivery import NotificationDelivery, hold_back_messages
from runvitals.server.alerts.finding_watch import FindingEvents
from runvitals.server.buckets.team_buckets import TeamBuckets
from runvitals.server.charts.overlay.kept_means import KeptMeans
from runvitals.server.clock import Clock
from runvitals.server.database.secret_box import SecretBox, temporary_secret_box
from runvitals.server.doors.project_rules import ProjectRules
from runvitals.server.doors.recording import DoorRecorder
from runvitals.server.doors.wandb.resuming_clients import ResumingClients
from runvitals.server.error_responses import add_error_handlers
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.findings.kept_findings import KeptFindings
from runvitals.server.health.other_servers import OtherServers
from runvitals.server.health.routes import health
from runvitals.server.health.self_metrics import SelfMetrics
from runvitals.server.health.server_health import ServerHealth
from runvitals.server.health.store_condition import StoreCondition
from runvitals.server.http import page
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.late_application import LateApplication
from runvitals.server.http.open_streams import OpenStreams
from runvitals.server.http.response_memory import ResponseLimits, ResponseMemory
from runvitals.server.ingest.endpoint import IngestEndpoint
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.library.stored.run_library import StoredLibrary
from runvitals.server.live.feed import RunFeeds
from runvitals.server.mail.mailer import Mailer
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outside_services import OutsideServices
from runvitals.server.server_access import Entrances
from runvitals.server.services import SharedServices
from runvitals.server.shared_server import IngestFastPath, SharedServer
from runvitals.server.usage.gauges import UsageGauges
from runvitals.server.usage.payments import payment_provider
from runvitals.server.usage.reports import UsageReports
from runvitals.server.usage.statements import Statements
from runvitals.server.usage.storage.read_days import ReadDays
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

if TYPE_CHECKING:
    from fastapi import FastAPI

    from runvitals.server.doors.mlflow.door import MlflowDoor
    from runvitals.server.doors.otlp.receiver import OtlpReceiver
    from runvitals.server.doors.promql.series_source import PromqlServer
    from runvitals.server.doors.remote_write.receiver import RemoteWrite
    from runvitals.server.http.router import Router, RouterModule
    from runvitals.server.reports.kept_panels import KeptPanels

_CHECK_S = 2.0
_READ_DAYS_S = 60.0
FIRST_TEAM = "main"
LOOPBACK = ("127.0.0.1", "::1")
"""The proxies that are trusted unless others are named: those on the same machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How a server differs from the usual one.

    Attributes:
        token_required: before there are accounts, every request must have a token. Otherwise only requests to
            loopback are answered.
        clock: the time now, ms UTC.
        static: the folder of the built page.
        response_limits: of the memory of responses that are being sent.
        routers: of further resources.
        first_team: the team that owns what was stored before there were accounts.
        offers_setup: whether a link to create the first administrator was printed, so that its page needs no
            token.
        trusted_proxies: addresses and networks whose `X-Forwarded-For`, `-Proto` and `-Prefix` are believed.
        secret_box: encrypts secrets of accounts; None: by a key that is lost when the server ends.
        passwords: hashes passwords.
        is_breached: whether a password is in a list of breached ones, which are not accepted.
        monotonic: seconds that only grow, for limits on guessing and the cache of rights.
        fetcher: sends requests to providers and for images; None: to public addresses, and those of the
            setting `outbound_allow`.
        files: keeps the files that runs send; None: they are not accepted.
        team_folders: folders below which a bucket of a team may be a folder.
    """

    token_required: bool = False
    clock: Callable[[], int] = field(default_factory=Clock)
    limits: Limits = field(default_factory=Limits)
    static: str = page.FOLDER
    response_limits: ResponseLimits | None = None
    routers: Sequence[Router | RouterModule] = ()
    first_team: str = FIRST_TEAM
    offers_setup: bool = False
    trusted_proxies: Sequence[str] = LOOPBACK
    secret_box: SecretBox = field(default_factory=temporary_secret_box)
    passwords: Passwords = field(default_factory=Passwords)
    is_breached: Callable[[str], bool] | None = None
    monotonic: Callable[[], float] = time.monotonic
    fetcher: Fetcher | None = None
    files: ReceivedFiles | None = None
    team_folders: Sequence[str] = ()


def build_server(
    store: SampleStore, metadata_store: MetadataStore, options: ServerOptions | None = None
) -> SharedServer:
    """Build a server over two stores, with running threads. The caller closes it, and then the stores.

    Example:
        >>> with SqliteChunks(folder) as store, open_metadata_store(address) as metadata_store:
        ...     serve(build_server(store, metadata_store), listener)
    """
    options = options or ServerOptions()
    clock, tally = options.clock, SelfMetrics()
    others = OtherServers(store, metadata_store)  # before the first row is logged
    recorder = Recorder(store, metadata_store, clock, options.limits)
    metadata_check = _check_of(metadata_store)
    access = Entrances(
        metadata_store,
        clock,
        options.monotonic,
        token_required=options.token_required,
        first_team=options.first_team,
        offers_setup=options.offers_setup,
        trusted_proxies=options.trusted_proxies,
        requested=recorder.usage.request,
    )
    recorder.artifacts.may = access.control.may_of_sender
    ingest = IngestEndpoint(recorder, options.limits, tally, access.ingest)
    door_recorder = DoorRecorder(recorder, ingest.admission, options.limits, tally, access.ingest)
    services = _services_of(store, metadata_store, options, recorder, door_recorder, access, others, tally)
    directory = services.access.directory
    directory.accept_tokens(lambda token: services.outside_services.service_tokens.account(token))
    delivery = NotificationDelivery(
        metadata_store.alerts.outbox,
        services.channels.by_target,
        clock,
        hold_back=partial(hold_back_messages, metadata_store),
    )
    automations = AutomationThread(metadata_store, directory, clock)
    alerting = services.alerting
    others.start(recorder, services.library, alerting.rule_watch.queue, recorder.forget)
    alerting.start()
    read_days = _writer_of(metadata_store.read_days)
    own_threads = [
        metadata_check,
        read_days,
        services.account_services.mailer.thread,
        services.outside_services.audit_webhook.thread,
        delivery.thread,
        automations.thread,
        access.thread,
    ]
    for thread in own_threads:
        thread.start()
    services.health.threads += [*recorder.threads, *own_threads, *alerting.threads, *others.threads]
    ingest_entry, admits = access.for_ingest(ingest)
    api = Once(partial(_application, services, options))
    return SharedServer(
        services,
        api,
        recorder,
        others,
        ingest_entry=ingest_entry,
        api_entry=access.for_browsers(LateApplication(api, _early_application(services))),
        otlp_entry=LateApplication(Once(partial(_otlp_entry, services, access))),
        fast_path=IngestFastPath(ingest, admits, access.count_ingest),
        closed_first=(
            metadata_check.close,
            read_days.close,
            access.thread.close,
            automations.thread.close,
            alerting.close,
            delivery.close,
            services.account_services.mailer.thread.close,
            services.outside_services.close,
            services.team_buckets.close,
        ),
    )


def _services_of(
    store: SampleStore,
    metadata_store: MetadataStore,
    options: ServerOptions,
    recorder: Recorder,
    door_recorder: DoorRecorder,
    access: Entrances,
    others: OtherServers,
    tally: SelfMetrics,
) -> SharedServices:
    clock, monotonic, box, files = options.clock, options.monotonic, options.secret_box, options.files
    control, directory, closing = access.control, access.control.directory, anyio.Event()
    buckets = metadata_store.accounts.buckets
    account_services = AccountServices(
        metadata_store,
        box,
        clock,
        Mailer(metadata_store, box, clock),
        passwords=options.passwords,
        monotonic=monotonic,
        is_breached=options.is_breached,
    )
    asks_second_factor = account_services.sign_in.second_factors.are_asked
    outside = OutsideServices(metadata_store, box, clock, monotonic, asks_second_factor, options.fetcher)
    team_buckets = TeamBuckets(buckets, box, clock, monotonic, options.team_folders, outside.fetcher)
    if files is not None:
        files.team_stores = team_buckets
    condition = StoreCondition(
        store,
        metadata_store,
        None if files is None else files.space,
        directory.away_s,
        lambda: KNOWN_WHILE_AWAY_S if directory.accounts_exist else inf,
    )
    reports = UsageReports(metadata_store, clock)
    project_rules = ProjectRules(metadata_store, directory, monotonic)
    health = ServerHealth(
        condition=condition, others=others, clock=clock, tally=tally, usage_gauges=UsageGauges(reports)
    )
    return SharedServices(
        library=StoredLibrary(store, metadata_store, clock, recorder.version, files),
        closing=closing,
        feeds=RunFeeds(closing),
        open_streams=OpenStreams(),
        kept_means=KeptMeans(),
        response_memory=ResponseMemory(options.response_limits),
        findings=KeptFindings(
            metadata_store,
            clock,
            [FindingEvents(metadata_store, clock).note],
            lambda number: recorder.note_change(number, has_facts=True),
        ),
        access=control,
        changes=RecordedChanges(control),
        cursors=BoundCursors(metadata_store.accounts.cursor_key),
        clock=clock,
        sample_store=store,
        metadata_store=metadata_store,
        health=health,
        account_services=account_services,
        outside_services=outside,
        files=files,
        team_buckets=team_buckets,
        channels=Channels(metadata_store, outside, account_services.mailer, directory, clock),
        alerting=Alerting(metadata_store, store, directory, box, clock, monotonic, others.leads),
        usage_reports=reports,
        statements=Statements(metadata_store, clock),
        payments=payment_provider(outside.fetcher, os.environ),
        kept_panels=Once(partial(_kept_panels, clock)),
        door_recorder=door_recorder,
        project_rules=project_rules,
        mlflow_door=Once(partial(_mlflow_door, store, metadata_store)),
        resuming_clients=ResumingClients(monotonic),
        promql=Once(partial(_promql, store, metadata_store, clock)),
        remote_write=Once(partial(_remote_write, door_recorder, project_rules, metadata_store, clock)),
        otlp=Once(partial(_otlp, door_recorder, project_rules, clock)),
    )


def _early_application(services: SharedServices) -> Starlette:
    """Make what answers before the application is made: probes and metrics."""
    early = Starlette(
        routes=health.ROUTES, middleware=[Middleware(GZipMiddleware, minimum_size=1000, compresslevel=4)]
    )
    early.state.services = services
    add_error_handlers(early)
    return early


# The functions below import modules that a server does not need before the first request for them.


def _application(services: SharedServices, options: ServerOptions) -> FastAPI:
    from runvitals.server.shared_application import shared_application

    return shared_application(
        services, options.static, options.routers, options.secret_box, options.clock, health.ROUTES
    )


def _otlp_entry(services: SharedServices, access: Entrances) -> ASGIApp:
    from runvitals.server.doors.otlp.http import OtlpEndpoint, StatusBodies

    return StatusBodies(access.for_ingest(OtlpEndpoint(services.otlp()))[0])


def _otlp(recorder: DoorRecorder, rules: ProjectRules, clock: Callable[[], int]) -> OtlpReceiver:
    from runvitals.server.doors.otlp.receiver import OtlpReceiver

    return OtlpReceiver(recorder, rules, clock)


def _mlflow_door(store: SampleStore, metadata_store: MetadataStore) -> MlflowDoor:
    from runvitals.server.doors.mlflow.door import MlflowDoor

    return MlflowDoor(store, metadata_store)


def _kept_panels(clock: Callable[[], int]) -> KeptPanels:
    from runvitals.server.reports.kept_panels import KeptPanels

    return KeptPanels(clock)


def _promql(store: SampleStore, metadata_store: MetadataStore, clock: Callable[[], int]) -> PromqlServer:
    from runvitals.server.doors.promql.series_source import PromqlServer

    return PromqlServer(store, metadata_store, clock)


def _remote_write(
    recorder: DoorRecorder, rules: ProjectRules, metadata_store: MetadataStore, clock: Callable[[], int]
) -> RemoteWrite:
    from runvitals.server.doors.remote_write.receiver import RemoteWrite

    return RemoteWrite(recorder, rules, metadata_store, clock)


def _writer_of(read_days: ReadDays) -> SupervisedThread:
    """Return the thread that writes when runs and artifacts were last read."""

    def write() -> bool:
        read_days.write()
        return not thread.closing.is_set()

    thread = SupervisedThread("read-days", write, every_s=_READ_DAYS_S)
    return thread


def _check_of(metadata_store: MetadataStore) -> SupervisedThread:
    """The thread that logs that the database file was deleted, even without requests."""

    def check() -> bool:
        problem = metadata_store.problem()
        if problem is not None:
            raise OSError(problem)
        return not thread.closing.is_set()

    thread = SupervisedThread("metadata-file", check, every_s=_CHECK_S, longest_pause_s=_CHECK_S)
    return thread
