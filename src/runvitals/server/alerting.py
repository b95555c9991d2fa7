"""`Alerting`: what a shared server does so that users are notified about runs."""

from __future__ import annotations

from collections.abc import Callable

from runvitals.accounts.directory import Directory
from runvitals.accounts.secret_box import SecretBox
from runvitals.alerts.run_alerts import RunAlerts
from runvitals.store.metadata import MetadataStore
from runvitals.store.supervised_thread import SupervisedThread


class Alerting:
    """The threads that decide who is notified about what.

    Attributes:
        run_alerts: ends, losses and alerts of runs.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        box: SecretBox,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self.run_alerts = RunAlerts(metadata_store, directory, box, clock, monotonic)

    @property
    def threads(self) -> list[SupervisedThread]:
        return [self.run_alerts.thread]

    def start(self) -> None:
        """Start the threads."""
        for thread in self.threads:
            thread.start()

    def close(self) -> None:
        """Finish what is being decided. What was not is decided after the next start."""
        for thread in self.threads:
            thread.close()
