"""The shared server as one ASGI application: ingest, API, page, health and metrics."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import inf

import anyio
import anyio.to_thread
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from runvitals.server.access import idempotency_openapi
from runvitals.server.access.actions import Action
from runvitals.server.access.authenticator import KNOWN_WHILE_AWAY_S
from runvitals.server.access.idempotency_keys import IdempotencyKeys
from runvitals.server.access.permission import AUTHENTICATED, PUBLIC, needs
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import Organisation
from runvitals.server.access.sender_rights import may_of_sender
from runvitals.server.access.server_access import ServerAccess
from runvitals.server.access.token_required import METRICS_PATH
from runvitals.server.account_routes import ACCOUNT_ROUTERS
from runvitals.server.accounts.passwords import Passwords
from runvitals.server.accounts.routes.services import AccountServices
from runvitals.server.accounts.secret_box import SecretBox, temporary_secret_box
from runvitals.server.alerts.alerting import Alerting
from runvitals.server.alerts.delivery.automation_thread import AutomationThread
from runvitals.server.alerts.delivery.channels import Channels
from runvitals.server.alerts.delivery.delivery import NotificationDelivery, hold_back_messages
from runvitals.server.app import application
from runvitals.server.background.housekeeping import HousekeepingTotals
from runvitals.server.clock import Clock
from runvitals.server.doors.mlflow.requests import with_common_prefix
from runvitals.server.doors.mlflow.run_writes import MlflowDoor
from runvitals.server.doors.otlp.http import OtlpEndpoint, StatusBodies, is_for_otlp
from runvitals.server.doors.otlp.receiver import OtlpReceiver
from runvitals.server.doors.project_rules import ProjectRules
from runvitals.server.doors.promql.routes import PromqlServer
from runvitals.server.doors.recording import DoorRecorder
from runvitals.server.doors.remote_write import routes as remote_write
from runvitals.server.doors.remote_write.receiver import RemoteWrite
from runvitals.server.doors.routers import DOOR_ROUTERS
from runvitals.server.doors.wandb.resuming_clients import ResumingClients
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.routes import uploads
from runvitals.server.health.other_servers import OtherServers
from runvitals.server.health.self_metrics import SelfMetrics, leader_text, waiting_text
from runvitals.server.health.store_condition import StoreCondition
from runvitals.server.http import page
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.fast_path import Headers
from runvitals.server.http.latest_reading import MOMENT_S
from runvitals.server.http.response_memory import ResponseLimits, ResponseMemory
from runvitals.server.http.router import Router, RouterModule
from runvitals.server.ingest.endpoint import PATH, IngestEndpoint
from runvitals.server.ingest.openapi import describe
from runvitals.server.ingest.recorder import Recorder
from runvitals.server.library.stored.run_library import StoredLibrary
from runvitals.server.mail.mailer import Mailer
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.outside_services import OutsideServices
from runvitals.server.usage.gauges import UsageGauges
from runvitals.server.usage.payments import payment_provider
from runvitals.server.usage.reports import UsageReports
from runvitals.server.usage.statements import Statements
from runvitals.store.errors import MetadataStoreUnavailable
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

_CHECK_S = 2.0
FIRST_TEAM = "main"
LOOPBACK = ("127.0.0.1", "::1")
"""The proxies that are trusted unless others are named: those on the same machine."""


class IngestFastPath:
    """Accepts envelopes of known writers without the framework: see `connection.FastPath`."""

    path = PATH.encode("ascii")

    def __init__(
        self,
        ingest: IngestEndpoint,
        admits: Callable[[Headers], bool],
        count: Callable[[Headers], None],
    ) -> None:
        self.admits = admits
        self._ingest = ingest
        self._count = count

    def post(self, headers: Headers, body: bytes, done: Callable[[bytes | None], None]) -> bool:
        def answer(response: bytes | None) -> None:
            if response is not None:  # the application counts the others
                self._count(headers)
            done(response)

        return self._ingest.post(headers, body, answer)


class SharedServer:
    """An ASGI application over a sample store and a metadata store. The caller closes both, after it.

    Args:
        token_required: before there are accounts, every request must have a token. Otherwise only requests to
            loopback are answered.
        clock: the time now, ms UTC.
        static: the folder of the built page.
        response_limits: of the memory of responses that are being sent.
        routers: of further resources.
        first_team: the team that owns what was stored before there were accounts.
        offers_setup: whether a link to create the first administrator was printed, so that its page needs no
            token.
        trusted_proxies: addresses and networks whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.
        secret_box: encrypts secrets of accounts; None: by a key that is lost when the server ends.
        passwords: hashes passwords; None: as `Passwords()`.
        is_breached: whether a password is in a list of stolen ones, which are not accepted.
        monotonic: seconds that only grow, for limits on guessing and the cache of rights.
        fetcher: sends requests to providers and for images; None: to public addresses, and those of the
            setting `outbound_allow`.
        files: keeps the files that runs send; None: they are not accepted.

    Attributes:
        api: the application behind the authentication.
        access: decides who may do what.
        mailer: sends mail about accounts; its thread runs.
        delivery: delivers notifications; its thread runs.
        alerting: decides who is notified about what happens to runs; its threads run.
        statements: of teams, users and cost centres.
        usage_gauges: what teams have used, for `/metrics`.
        response_memory: what those responses hold.
        housekeeping: totals of housekeeping, for `/metrics`; the caller may set them.
        others: the servers that share the stores, and who of them leads.
        threads: background threads whose failures `/readyz` and `/metrics` report; the caller may add to
            them.

    Example:
        >>> with SqliteChunks(folder) as store, open_metadata_store(address) as metadata_store:
        ...     serve(SharedServer(store, metadata_store), listener)
    """

    def __init__(
        self,
        store: SampleStore,
        metadata_store: MetadataStore,
        token_required: bool = False,
        clock: Callable[[], int] | None = None,
        limits: Limits | None = None,
        static: str = page.FOLDER,
        response_limits: ResponseLimits | None = None,
        routers: Sequence[Router | RouterModule] = (),
        first_team: str = FIRST_TEAM,
        offers_setup: bool = False,
        trusted_proxies: Sequence[str] = LOOPBACK,
        secret_box: SecretBox | None = None,
        passwords: Passwords | None = None,
        is_breached: Callable[[str], bool] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        fetcher: Fetcher | None = None,
        files: ReceivedFiles | None = None,
    ) -> None:
        limits, clock = limits or Limits(), clock or Clock()
        self.tally = SelfMetrics()
        self.housekeeping = HousekeepingTotals()
        self.others = OtherServers(store, metadata_store)  # before the first row is logged
        self._recorder = Recorder(store, metadata_store, clock, limits)
        self._metadata_store = metadata_store
        self._metadata_check = SupervisedThread(
            "metadata-file",
            self._check_metadata_store,
            every_s=_CHECK_S,
            longest_pause_s=_CHECK_S,
        )
        self.threads: list[SupervisedThread] = [*self._recorder.threads, self._metadata_check]
        self._metadata_check.start()
        access = ServerAccess(
            metadata_store,
            clock,
            monotonic,
            token_required=token_required,
            first_team=first_team,
            offers_setup=offers_setup,
            trusted_proxies=trusted_proxies,
            requested=self._recorder.usage.request,
        )
        self.access = access.control
        self._condition = StoreCondition(
            store,
            metadata_store,
            None if files is None else files.space,
            self.access.directory.away_s,
            lambda: KNOWN_WHILE_AWAY_S if self.access.directory.accounts_exist else inf,
        )
        self._recorder.artifacts.may = partial(may_of_sender, self.access)
        self._ingest = IngestEndpoint(self._recorder, limits, self.tally, access.ingest)
        library = StoredLibrary(store, metadata_store, clock, self._recorder.version, files)
        self.api = self._with_health(
            application(
                library,
                static,
                response_limits,
                (*ACCOUNT_ROUTERS, *DOOR_ROUTERS, *([] if files is None else [uploads.router]), *routers),
            )
        )
        if files is not None:
            self.api.state.uploads = uploads.ServerFiles(files, metadata_store)
        idempotency_openapi.describe(self.api)
        describe(self.api)  # after it: ingest has numbers instead of keys
        self.response_memory: ResponseMemory = self.api.state.response_memory
        self.closing = self.api.state.closing
        self.api.state.access = self.access
        self.api.state.door_recorder = DoorRecorder(
            self._recorder, self._ingest.admission, limits, self.tally, access.ingest
        )
        self.api.state.metric_feed = self._recorder.feed
        self.api.state.usage_reports = UsageReports(metadata_store, clock)
        self.statements = self.api.state.statements = Statements(metadata_store, clock)
        self.usage_gauges = UsageGauges(self.api.state.usage_reports)
        self.api.state.resuming_clients = ResumingClients(monotonic)
        self.api.state.mlflow_door = MlflowDoor(store, metadata_store)
        self.api.state.project_rules = ProjectRules(metadata_store, self.access.directory, monotonic)
        self.api.state.sample_store = store
        self.api.state.promql = PromqlServer(store, metadata_store, clock)
        self.api.state.remote_write = RemoteWrite(
            self.api.state.door_recorder, self.api.state.project_rules, clock
        )
        box = secret_box or temporary_secret_box()
        requests = metadata_store.accounts.idempotent_requests
        # The innermost: bodies have been read, and responses are not yet compressed.
        self.api.user_middleware.append(Middleware(IdempotencyKeys, requests=requests, box=box, clock=clock))
        services = self._add_accounts(box, passwords or Passwords(), is_breached, monotonic)
        self.mailer = services.mailer
        self._outside = OutsideServices(
            metadata_store, box, clock, monotonic, services.sign_in.second_factors.are_asked, fetcher
        )
        self.api.state.outside_services = self._outside
        self.api.state.payments = payment_provider(self._outside.fetcher, os.environ)
        self._outside.audit_webhook.thread.start()
        self.threads.append(self._outside.audit_webhook.thread)
        self.api.state.channels = Channels(
            metadata_store, self._outside, self.mailer, self.access.directory, clock
        )
        self.delivery = NotificationDelivery(
            metadata_store.alerts.outbox,
            self.api.state.channels.by_target,
            clock,
            hold_back=partial(hold_back_messages, metadata_store),
        )
        self.delivery.thread.start()
        self._automations = AutomationThread(
            metadata_store, self.access.directory, self._recorder.feed, clock
        )
        self._automations.thread.start()
        self.threads += [self.delivery.thread, self._automations.thread]
        self.alerting = Alerting(
            metadata_store, store, self.access.directory, box, clock, monotonic, self.others.leads
        )
        self.others.start(self._recorder, library, self.alerting.rule_watch.queue, self._recorder.forget)
        self.alerting.start()
        self.threads += [*self.alerting.threads, *self.others.threads]
        self.access.directory.accept_tokens(lambda token: self._outside.service_tokens.account(token))
        self._rights = access.thread
        self._rights.start()
        self.threads.append(self._rights)
        self._ingest_entry, admits = access.for_ingest(self._ingest)
        self.fast_path = IngestFastPath(self._ingest, admits, access.count_ingest)
        self._api_entry = access.for_browsers(self.api)
        self.otlp = OtlpReceiver(self.api.state.door_recorder, self.api.state.project_rules, clock)
        self._otlp_entry = StatusBodies(access.for_ingest(OtlpEndpoint(self.otlp))[0])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Ingest bypasses the framework and the headers for browsers: they would cost more than the work
        # itself.
        if scope["type"] == "http" and scope["path"] == PATH:
            await self._ingest_entry(scope, receive, send)
        elif scope["type"] == "http" and is_for_otlp(scope["path"]):
            await self._otlp_entry(scope, receive, send)
        else:
            entered = with_common_prefix(scope) if scope["type"] == "http" else scope
            await self._api_entry(entered, receive, send)

    def forget(self, run_ids: Collection[int]) -> None:
        """Forget runs that were removed for good, here and at the other servers. Call it from any thread."""
        self._recorder.forget(run_ids)
        self.others.forget(run_ids)

    def close(self) -> None:
        """Finish the requests in flight. No request may follow."""
        self._metadata_check.close()
        self._rights.close()
        self._automations.thread.close()
        self.alerting.close()
        self.delivery.close()
        self.mailer.thread.close()
        self._outside.close()
        self._recorder.close()
        self.others.close()

    def _add_accounts(
        self,
        box: SecretBox,
        passwords: Passwords,
        is_breached: Callable[[str], bool] | None,
        monotonic: Callable[[], float],
    ) -> AccountServices:
        """Give the application what the routes of accounts work with, with a running mailer."""
        clock = self.access.clock
        mailer = Mailer(self._metadata_store, box, clock)
        services = AccountServices(
            self._metadata_store,
            box,
            clock,
            mailer,
            passwords=passwords,
            monotonic=monotonic,
            is_breached=is_breached,
        )
        self.api.state.account_services = services
        mailer.thread.start()
        self.threads.append(mailer.thread)
        return services

    def _check_metadata_store(self) -> bool:
        """Have the supervised thread log that the database file was deleted, even without requests."""
        problem = self._metadata_store.problem()
        if problem is not None:
            raise OSError(problem)
        return not self._metadata_check.closing.is_set()

    def _with_health(self, app: FastAPI) -> FastAPI:
        # Before the page, which is mounted at `/` and answers every other path.
        app.state.shared_server = self
        app.router.routes[:0] = (
            *remote_write.router.routes,
            *_own_routes.routes,
        )
        return app

    async def readiness(self) -> tuple[str | None, list[str]]:
        """Why the server cannot make samples durable, None if it can; and what needs attention."""
        problem, warnings = await self._condition.readiness()
        warnings += [f"{thread.name}: {thread.problem}" for thread in self.threads if thread.problem]
        return problem, warnings

    async def exposition(self) -> str:
        """The metrics of the server itself, in Prometheus' text format."""
        stats, waiting = await asyncio.gather(self._condition.stats(), self._condition.outbox())
        threads = {**stats.threads, **{thread.name: thread.problem for thread in self.threads}}
        text = self.tally.exposition(stats, self.housekeeping, threads) + leader_text(self.others.leads())
        return text if waiting is None else text + waiting_text(waiting, self.access.clock())


_own_routes = Router(include_in_schema=False)


@_own_routes.get("/healthz", dependencies=[needs(PUBLIC)])
async def _healthy(request: Request) -> Response:
    return PlainTextResponse("ok\n")


@_own_routes.get("/readyz", dependencies=[needs(PUBLIC)])
async def _ready(request: Request) -> Response:
    server: SharedServer = request.app.state.shared_server
    problem, warnings = await server.readiness()
    body = {"ready": problem is None, "problem": problem, "warnings": warnings}
    return JSONResponse(body, 503 if problem else 200)


@_own_routes.get(METRICS_PATH, dependencies=[needs(AUTHENTICATED)])
async def _metrics(request: Request) -> Response:
    server: SharedServer = request.app.state.shared_server
    text, usage = await asyncio.gather(server.exposition(), _usage_text(server, requester_of(request)))
    return PlainTextResponse(text + usage, media_type="text/plain; version=0.0.4")


async def _usage_text(server: SharedServer, requester: Requester) -> str:
    """The part of `/metrics` that only some may read; empty while the metadata store cannot say who may."""
    may = partial(server.access.may, requester, Action.BILLING_READ, Organisation())
    with anyio.move_on_after(MOMENT_S):
        try:
            if await anyio.to_thread.run_sync(may, abandon_on_cancel=True):
                return server.usage_gauges.text
        except MetadataStoreUnavailable:
            return ""
    return ""
