"""`Alerting`: what a shared server does so that users are notified about runs."""

from __future__ import annotations

from collections.abc import Callable

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.alerts.finding_watch import FindingWatch
from runvitals.server.alerts.rule_notices import RuleNotices
from runvitals.server.alerts.rule_watch import RuleWatch
from runvitals.server.alerts.run_alerts import RunAlerts
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread


class Alerting:
    """The threads that decide who is notified about what.

    Attributes:
        run_alerts: ends, losses and alerts of runs.
        rule_notices: what happens when a rule fires.
        rule_watch: evaluates rules on what its queue gets.
        finding_watch: evaluates rules about findings.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        sample_store: SampleStore,
        directory: Directory,
        box: SecretBox,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self.run_alerts = RunAlerts(metadata_store, directory, box, clock, monotonic)
        self.rule_notices = RuleNotices(metadata_store, directory, clock)
        self.rule_watch = RuleWatch(
            metadata_store,
            sample_store,
            self.rule_notices.note,
            clock,
            leads,
            self.rule_notices.watches_all,
        )
        self.finding_watch = FindingWatch(
            metadata_store, self.rule_notices.note, clock, leads, self.rule_notices.watches_all
        )

    @property
    def threads(self) -> list[SupervisedThread]:
        """The threads, which run."""
        return [self.run_alerts.thread, self.rule_watch.thread, self.finding_watch.thread]

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """Finish what is being decided. What was not is decided after the next start."""
        self.finding_watch.thread.close()
        self.rule_watch.close()
        self.run_alerts.thread.close()
