"""The work that a server does beside answering requests: housekeeping, statistics, usage, findings."""

from __future__ import annotations

from contextlib import ExitStack

from runvitals.server.background.housekeeping import Housekeeping, RetentionPolicy
from runvitals.server.clock import Clock
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.findings.judge_thread import JudgeThread
from runvitals.server.library.stored.statistics_updater import StatisticsUpdater
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.shared_server import SharedServer
from runvitals.server.usage.rollup import UsageRollup
from runvitals.server.usage.settings import UsageSettings
from runvitals.server.usage.usage_alerts import check_limits
from runvitals.store.samples.interface import SampleStore


def start_background(
    stack: ExitStack,
    app: SharedServer,
    store: SampleStore,
    metadata_store: MetadataStore,
    retention: RetentionPolicy,
    clock: Clock,
    files: ReceivedFiles,
) -> None:
    """Start the threads of a server. They end with the stack, and `/readyz` reports their failures."""
    services, health = app.services, app.services.health

    def after(settings: UsageSettings, now_ms: int) -> None:
        check_limits(metadata_store, settings, now_ms)
        health.usage_gauges.update(settings, now_ms)
        services.statements.update(settings, now_ms)

    leads = health.others.leads
    usage = UsageRollup(store, metadata_store, clock, after, leads)
    housekeeping = Housekeeping(
        store,
        metadata_store,
        retention,
        app.forget,
        clock.earliest,
        services.account_services.mailer,
        files.collect,
        usage.keep_before,
        leads,
    )
    health.housekeeping, health.run_trash_ms = housekeeping.totals, retention.trash_ms
    statistics = StatisticsUpdater(store, metadata_store, clock, leads=leads)
    judge = JudgeThread(store, metadata_store, services.findings, clock, leads=leads)
    for work in (housekeeping, statistics, usage, judge):
        health.threads.append(work.thread)
        stack.enter_context(work)
