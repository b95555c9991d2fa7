"""`OtherServers`: what a server tells those that share its stores, and what it does with what they tell.

Everything durable is in the stores, which all servers read. Messages are about what a server keeps in memory:
which runs have changed, for open pages; which were removed for good; where samples arrived, for alert rules,
which only the leader evaluates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from runvitals.server.alerts.sample_queue import SampleQueue
from runvitals.server.alerts.samples_of_others import SamplesOfOthers
from runvitals.server.database.server_link import Message
from runvitals.server.ingest.envelope_recorder import Recorder
from runvitals.server.ingest.summary_recovery import restore_summaries
from runvitals.server.library.stored.run_library import StoredLibrary
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleBatch, SampleStore
from runvitals.store.supervised_thread import SupervisedThread

_RECOVERY_S: Final = 30.0
_FACTS, _RUNS, _LIBRARY, _FORGET, _SAMPLES = "facts", "runs", "library", "forget", "samples"


class OtherServers:
    """The link to the other servers. Make it before the recorder, and call `start` when all is there.

    Attributes:
        link: says who leads.
    """

    def __init__(self, store: SampleStore, metadata_store: MetadataStore) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self.link = metadata_store.join_servers(self._hear, self._refresh_all)
        self._samples = SamplesOfOthers(store, self.leads)
        self._recovery = SupervisedThread("summary-recovery", self._recover, every_s=_RECOVERY_S)

    def start(
        self,
        recorder: Recorder,
        library: StoredLibrary,
        queue: SampleQueue,
        forget: Callable[[Collection[int]], None],
    ) -> None:
        """Begin to tell and to listen.

        Args:
            queue: of the samples that alert rules have not seen.
            forget: called with the ids of runs that another server removed for good.
        """
        self._recorder, self._library, self._forget = recorder, library, forget
        self._samples.queue = queue
        recorder.on_change = self._publish_change
        recorder.sample_commits.on_stored = self._publish_samples
        library.on_change = lambda: self.link.publish(_LIBRARY, {"": 0})
        for thread in self.threads:
            thread.start()

    @property
    def threads(self) -> list[SupervisedThread]:
        """The threads, which run."""
        return [self.link.thread, self._samples.thread, self._recovery]

    def leads(self) -> bool:
        """Return whether this server does what only one may do."""
        return self.link.is_leader

    def forget(self, run_ids: Collection[int]) -> None:
        """Tell the others that runs were removed for good."""
        self.link.publish(_FORGET, dict.fromkeys(run_ids, 0))

    def close(self) -> None:
        """End the threads, and leave the other servers."""
        for thread in (self._samples.thread, self._recovery):
            thread.close()
        self.link.close()

    def _publish_change(self, run_id: int, has_facts: bool) -> None:
        self.link.publish(_FACTS if has_facts else _RUNS, {run_id: 0})

    def _publish_samples(self, batches: Sequence[SampleBatch]) -> None:
        if self.leads():
            self._samples.queue.add(batches)
        else:
            self.link.publish(_SAMPLES, {batch.run: int(batch.t.max()) for batch in batches if len(batch.t)})

    def _hear(self, message: Message) -> None:
        kind, items = message["kind"], message["items"]
        if kind == _LIBRARY:
            self._library.changed_elsewhere()
        elif kind == _FORGET:
            self._forget([int(run_id) for run_id, _ in items])
        elif kind == _SAMPLES:
            self._samples.add({int(lane): int(t) for lane, t in items})
        elif kind in (_FACTS, _RUNS):
            for run_id, _ in items:
                self._recorder.changed_elsewhere(int(run_id), kind == _FACTS)

    def _refresh_all(self) -> None:
        self._recorder.all_changed()
        self._library.changed_elsewhere()

    def _recover(self) -> bool:
        """Complete the summaries of runs whose rows a server had that has died."""
        if self.leads() and not self._recovery.closing.is_set():
            restore_summaries(self._store, self._metadata_store, while_running=True)
        return not self._recovery.closing.is_set()
