"""A relay in the foreground: delivers the runs of this host, or named runs, and prints their progress.

It does not take over a run that another relay is delivering to the same destination; it waits for its lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from runvitals.base.signal_flag import SignalFlag
from runvitals.journal import paths
from runvitals.readers.journals.runs import RunList
from runvitals.relay.engine.backlog import hosts_of_run
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import RunDelivery
from runvitals.relay.engine.delivery_thread import DeliveryThread
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.relay.engine.undelivered import own_host

TICK_S = 1.0
# Time limit for the last delivery at the end.
FLUSH_S = 5.0
STOPPED = "stopped"
WAITING = "waiting: another process is delivering it"


class Foreground:
    """Delivers runs until `stop()` is called, or until all named runs are delivered.

    Args:
        directory: the data folder.
        destinations: destinations as users write them.
        runs: run ids; empty: every run that is running on this host, now or later.
        show: called with a line at every change of state.
        cwd: the base of relative paths in destinations.
        environ: the environment destinations read their credentials from.

    Example:
        >>> relay = Foreground("/data", ["files:/out?format=csv"], ["brave-otter-1"], print)
        >>> relay.run()
        brave-otter-1 (node1) to files:/out?format=csv: delivering
        brave-otter-1 (node1) to files:/out?format=csv: delivered, 120 samples, 3 log() rows
    """

    def __init__(
        self,
        directory: str,
        destinations: Sequence[str],
        runs: Sequence[str],
        show: Callable[[str], None],
        cwd: str = ".",
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.directory = directory
        self.named = tuple(runs)
        self._specs = [DestinationSpec(text) for text in dict.fromkeys(destinations)]
        self._show = show
        self._cwd = os.path.abspath(cwd)
        self._environ = environ
        self._list = RunList(directory)
        self._threads: dict[str, DeliveryThread] = {}
        self._cursors: dict[tuple[str, str, str], Cursor] = {}
        self._started: set[tuple[str, str, str]] = set()
        self._live: dict[tuple[str, str], bool] = {}
        self._shown_states: dict[tuple[str, str, str], str] = {}
        self._stopping = SignalFlag()

    def stop(self) -> None:
        """Deliver the records written so far, and stop. May be called from a signal handler."""
        self._stopping.set()

    def run(self) -> bool:
        """Run until the end; returns whether everything was delivered and nothing was rejected.

        Raises:
            ValueError, ImportError: a destination could not be created.
        """
        for spec in self._specs:
            spec.factory()
        while not self._stopping.is_set():
            self.update()
            if self.named and all(map(self._is_done, self._cursors)):
                break
            self._stopping.wait(TICK_S)
        self._finish()
        cursors = self._cursors.values()
        return not any(c.error or c.rejection or c.closed in ("", STOPPED) for c in cursors)

    def _is_done(self, key: tuple[str, str, str]) -> bool:
        """Return whether nothing is left to do now; records held for `TooEarly` are delivered later."""
        cursor = self._cursors[key]
        return bool(cursor.closed) or (bool(cursor.held) and self._threads[key[2]].find(key[0]) is None)

    def update(self) -> None:
        """Start delivering new runs, and show changes of state."""
        for run_id, host, live in self._parts():
            before = self._live.get((run_id, host))
            self._live[run_id, host] = live
            for spec in self._specs:
                key = (run_id, host, spec.text)
                if key not in self._started:
                    self._start(key, spec, live)
                elif live is not before:
                    self._threads[spec.text].set_live(run_id, live)
        for key in list(self._cursors):
            self._show_state(key)

    # -- which runs

    def _parts(self) -> Iterator[tuple[str, str, bool]]:
        """Return (run, host, whether it is running there) of everything to be delivered."""
        own = own_host()
        for run_id in self.named or self._list.ids():
            folder = paths.run_dir(run_id, self.directory)
            run = self._list.run(run_id, time.time_ns() // 1_000_000)
            if run is None:
                continue
            running = {paths.safe_name(host.name) for host in run.hosts if host.ending.state == "running"}
            hosts = [host for known_id, host in self._live if known_id == run_id]
            for host in hosts_of_run(folder) if self.named else dict.fromkeys([own, *hosts]):
                if self.named or host in running or host in hosts:
                    yield run_id, host, host in running

    def _start(self, key: tuple[str, str, str], spec: DestinationSpec, live: bool) -> None:
        """Start delivering a host's part of a run, unless another process does."""
        run_id, host, _ = key
        cursor = self._cursors.get(key)
        if cursor is None:
            cursor = self._cursors[key] = Cursor(paths.run_dir(run_id, self.directory), spec, host)
        try:
            if not cursor.lock():
                return
            cursor.closed, cursor.cwd = "", cursor.cwd or self._cwd
            cursor.save()
            delivery = RunDelivery(cursor, lambda text: self._stop_requested(run_id, text), self._environ)
        except OSError as error:
            cursor.unlock()
            cursor.closed = str(error)  # the run was deleted, or its disk is full
            return
        delivery.live = live
        thread = self._threads.get(spec.text)
        if thread is None:
            thread = self._threads[spec.text] = DeliveryThread(spec.text)
            thread.start()
        self._started.add(key)
        thread.serve(delivery)

    def _stop_requested(self, run_id: str, text: str) -> None:
        self._show(f"{run_id}: a stop was requested ({text}); a relay in the foreground does not forward it")

    # -- the end

    def _finish(self) -> None:
        """Send the last records, release the runs, and record in their cursors that they were stopped.

        No background relay continues those.
        """
        until_s = time.monotonic() + FLUSH_S
        for (run_id, _, text), cursor in self._cursors.items():
            if (run_id, cursor.host, text) in self._started and not cursor.closed and not cursor.error:
                self._threads[text].flush(run_id, max(until_s - time.monotonic(), 0.0))
        for thread in self._threads.values():
            thread.stop()
        for thread in self._threads.values():
            thread.join()
        for key in self._started:
            cursor = self._cursors[key]
            try:
                if not self._is_done(key) and cursor.lock():
                    cursor.closed = STOPPED
                    cursor.save()
            except OSError as error:
                cursor.closed = str(error)
            finally:
                cursor.unlock()
        for key in self._cursors:
            self._show_state(key)

    def _show_state(self, key: tuple[str, str, str]) -> None:
        state = self._state(key)
        if state != self._shown_states.get(key):
            self._shown_states[key] = state
            run_id, host, text = key
            self._show(f"{run_id} ({host}) to {text}: {state}")

    def _state(self, key: tuple[str, str, str]) -> str:
        cursor = self._cursors[key]
        if cursor.closed:
            counts = cursor.counts
            summary = f"{cursor.closed}, {counts['samples']} samples, {counts['logs']} log() rows"
            return f"{summary}, {counts['rejected']} batches rejected" if counts["rejected"] else summary
        if key not in self._started:
            return WAITING
        if cursor.error:
            return f"failing: {cursor.error}"
        if cursor.held:
            return f"{cursor.held_records} records left: {cursor.held_why}"
        if cursor.rejection:
            return f"delivering; {cursor.counts['rejected']} batches rejected: {cursor.rejection}"
        return "delivering"
