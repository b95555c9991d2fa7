"""The relay's main thread: decides which runs to deliver, answers clients, and decides when to exit.

There is one relay per user and data folder. Each destination has its own thread
(`engine/delivery_thread.py`).
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from runvitals.base.numbers import parse_number
from runvitals.journal import paths
from runvitals.monitoring.environment import redaction
from runvitals.monitoring.monitor.peer import is_same_user
from runvitals.relay.client_connection import RelayClient
from runvitals.relay.engine.credentials import configured_destinations
from runvitals.relay.engine.cursor import Cursor, find_cursors
from runvitals.relay.engine.delivery import DELIVERED, RunDelivery
from runvitals.relay.engine.delivery_lag import delivery_lag
from runvitals.relay.engine.delivery_thread import DeliveryThread
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.relay.engine.undelivered import find_undelivered, is_complete, own_host
from runvitals.relay.host_commands import HostCommands
from runvitals.relay.other_relays import Handover, OtherRelays
from runvitals.relay.run_environments import RunEnvironments

TICK_S = 1.0
# How long a relay without running runs keeps trying to deliver what is left. After that, it is left to the
# next relay, or to `runvitals sync`.
KEEP_TRYING_S = 3600.0
# How long the relay waits before it exits when there is nothing to do: a job may start one run after the
# other.
LINGER_S = 5.0
# The maximum number of destination threads, including those of runs left behind by earlier relays. Running
# runs are always served.
MAX_THREADS = 16
_MAX_ACCEPTED = 64  # connections accepted per iteration: other users may open them without end
# How many undelivered records are counted for a trainer's `finish()`: takes 0.1 s.
_MAX_COUNTED = 10_000
_FLUSH_S = 10.0


class Relay:
    """Serves every run of a data folder that has a destination.

    Args:
        directory: the data folder.
        listener: the listening socket.
        is_helper: whether this one only delivers what the relay of the data folder has handed over.
    """

    def __init__(
        self,
        directory: str,
        listener: socket.socket,
        is_helper: bool = False,
    ) -> None:
        self.directory = directory
        self.host = own_host()
        self._listener = listener
        self._threads: dict[str, DeliveryThread] = {}  # by destination
        self._clients: dict[int, RelayClient] = {}  # by descriptor
        self._environments = RunEnvironments()
        self._commands = HostCommands(os.environ, self._report_command)
        # Destinations whose full text is known: cursors on disk leave out secrets.
        self._specs: dict[str, DestinationSpec] = {
            spec.text: spec for spec in configured_destinations(os.environ)
        }
        specs = self._specs.values()
        self._undelivered = {} if is_helper else find_undelivered(directory, self.host, specs)
        self._others = OtherRelays(directory)
        self._requests: dict[str, dict[str, Any]] = {}  # of the monitors, by run
        self._handed_over: dict[tuple[str, str], Handover] = {}  # by run and destination
        self._to_hand_over: deque[Handover] = deque()
        self._waiting: list[tuple[Cursor, bool]] = []  # (cursor, live) whose lock another process has
        self._stopping = False
        self._busy_s = self._connected_s = time.monotonic()
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until there is nothing left to do, or until SIGTERM."""
        wakeup, signal_fd = os.pipe()
        os.set_blocking(signal_fd, False)
        signal.set_wakeup_fd(signal_fd, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda number, frame: self._stop())
        self._selector.register(wakeup, selectors.EVENT_READ)
        while not self._stopping:
            for key, _ in self._selector.select(TICK_S):
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fd in self._clients:
                    self._read(self._clients[key.fd])
                elif self._others.handover(key.fd) is not None:
                    self._forward(key.fd)
            self._hand_over()
            self._start_deliveries()
            self._stop_idle_threads()
            if self._is_done() or (not self._clients and self._is_folder_deleted()):
                break
        self._listener.close()
        for thread in self._threads.values():
            thread.stop()
        for thread in self._threads.values():
            thread.join()

    def _stop(self) -> None:
        self._stopping = True

    def _is_done(self) -> bool:
        """Return whether to exit: nothing left to do, or no client and no success for a long time."""
        now_s = time.monotonic()
        pending = self._undelivered or self._waiting or self._to_hand_over
        idle = not pending and all(t.done for t in self._threads.values())
        if self._clients or not idle:
            self._busy_s = now_s
        if self._clients:
            self._connected_s = now_s
        return now_s - self._busy_s > LINGER_S or now_s - self._connected_s > KEEP_TRYING_S

    def _is_folder_deleted(self) -> bool:
        try:
            os.stat(self.directory)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # a network file system that does not answer may come back
        return False

    # -- clients

    def _accept(self) -> None:
        for _ in range(_MAX_ACCEPTED):
            try:
                sock, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            if not is_same_user(sock):
                sock.close()
                continue
            self._clients[sock.fileno()] = RelayClient(sock)
            self._selector.register(sock, selectors.EVENT_READ)

    def _read(self, client: RelayClient) -> None:
        messages = client.messages()
        if messages is None:
            self._disconnect(client)
            return
        for message in messages:
            self._handle(client, message)

    def _disconnect(self, client: RelayClient) -> None:
        self._selector.unregister(client.sock)
        del self._clients[client.sock.fileno()]
        client.sock.close()
        for run_id in client.runs.difference(self._running()):
            for thread in self._threads.values():
                thread.set_live(run_id, False)
            for fd in self._others.of_run(run_id):
                self._close_other(fd)

    def _handle(self, client: RelayClient, message: dict[str, Any]) -> None:
        op = message.get("op")
        if op == "serve":
            run_id = str(message["run"])
            client.runs.add(run_id)
            self._requests[run_id] = message
            self._environments.receive(run_id, message["destinations"], message.get("environ", {}))
            for text in message["destinations"]:
                self.serve(run_id, DestinationSpec(str(text)), message)
        elif op == "deliver":
            cursor = Cursor(
                paths.run_dir(str(message["run"]), self.directory),
                DestinationSpec(str(message["destination"])),
                paths.safe_name(str(message.get("host") or self.host)),
            )
            self._waiting.append((cursor, False))
        elif op == "flush":
            timeout_s = parse_number(str(message.get("timeout_s")), 0.0, KEEP_TRYING_S)
            arguments = (client, str(message["run"]), _FLUSH_S if timeout_s is None else timeout_s)
            threading.Thread(target=self._flush, args=arguments, daemon=True).start()
        elif op == "hello":
            client.send({"op": "hello", "pid": os.getpid(), "runs": self._running()})

    def _running(self) -> list[str]:
        """Return the runs whose monitor is connected."""
        return sorted({run_id for client in self._clients.values() for run_id in client.runs})

    def _flush(self, client: RelayClient, run_id: str, timeout_s: float) -> None:
        """Reply when a run is delivered, or when the time is up."""
        until_s = time.monotonic() + timeout_s
        reports: dict[str, dict[str, object]] = {}
        for thread in list(self._threads.values()):
            delivery = thread.find(run_id)
            if delivery is not None:
                done = thread.flush(run_id, max(until_s - time.monotonic(), 0.0))
                reports[delivery.cursor.spec.text] = delivery_report(delivery.cursor, done)
        for handover in [each for each in list(self._handed_over.values()) if each.run_id == run_id]:
            report = self._others.flush(handover, until_s)
            if report is not None:
                reports[handover.destination] = report
        for cursor in find_cursors(paths.run_dir(run_id, self.directory), self._specs.values()):
            if cursor.host == self.host:  # delivered completely, and no longer served
                reports.setdefault(cursor.spec.text, delivery_report(cursor, False))
        client.send({"op": "flushed", "run": run_id, "destinations": list(reports.values())})

    def _request_stop(self, run_id: str, text: str) -> None:
        self._send_to_monitor(run_id, {"op": "stop", "text": text})

    def _report_command(self, run_id: str, text: str) -> None:
        self._send_to_monitor(run_id, {"op": "event", "name": "command", "text": text})

    def _report_undelivered(self, run_id: str, text: str) -> None:
        event: dict[str, object] = {"op": "event", "name": "not_delivered", "text": redaction.text(text)}
        self._send_to_monitor(run_id, event)

    def _send_to_monitor(self, run_id: str, message: dict[str, object]) -> None:
        for client in list(self._clients.values()):
            if run_id in client.runs:
                client.send(message)

    # -- deliveries

    def serve(self, run_id: str, spec: DestinationSpec, request: Mapping[str, Any]) -> None:
        """Deliver a running run. Its cursor is saved immediately, so that a later relay finds it."""
        self._specs[spec.text] = spec
        if self._handed_over.pop((run_id, spec.text), None) is not None:
            for fd in self._others.of_run(run_id):
                self._close_other(fd)
        thread = self._thread(spec)
        if thread.find(run_id) is not None:
            thread.set_live(run_id, True)
            return
        cursor = Cursor(paths.run_dir(run_id, self.directory), spec, self.host)
        cursor.cwd, cursor.python = str(request.get("cwd", "")), str(request.get("python", ""))
        self._waiting.append((cursor, True))
        self._start_deliveries()

    def _start_deliveries(self) -> None:
        """Start the deliveries whose lock has become free, and those that earlier relays left behind.

        A destination serves one at a time of the latter.
        """
        waiting, self._waiting = self._waiting, []
        for cursor, live in waiting:
            if not self._start_delivery(cursor, live):
                self._waiting.append((cursor, live))
        for text, cursors in list(self._undelivered.items()):
            if text not in self._threads and len(self._threads) >= MAX_THREADS:
                continue
            thread = self._thread(DestinationSpec(text))
            while cursors and thread.idle:
                self._start_delivery(cursors.pop(0), False)
            if not cursors:
                del self._undelivered[text]

    def _start_delivery(self, cursor: Cursor, live: bool) -> bool:
        """Pass a run to the thread of its destination; False if another process is delivering it."""
        cwd, python = cursor.cwd, cursor.python
        run_id = os.path.basename(cursor.folder)
        live = live and run_id in self._running()
        try:
            if not cursor.lock():
                return False
            if live:
                cursor.closed, cursor.cwd = "", cwd or cursor.cwd
                cursor.python, cursor.by_hand = python or cursor.python, False
                cursor.save()
            elif is_complete(cursor):
                cursor.unlock()
                return True
            else:
                cursor.closed = ""
            environ = self._environments.environ(run_id, cursor.spec.text)
            delivery = RunDelivery(
                cursor,
                lambda text: self._request_stop(run_id, text),
                environ,
                lambda number, name: self._commands.request(cursor.folder, run_id, number, name),
            )
        except OSError:
            cursor.unlock()
            return True  # the run was deleted, or its disk is full: the position could not be saved
        delivery.live = live
        self._thread(cursor.spec).serve(delivery)
        return True

    def _thread(self, spec: DestinationSpec) -> DeliveryThread:
        thread = self._threads.get(spec.text)
        if thread is None:
            thread = DeliveryThread(spec.text, report=self._report_undelivered, hand_over=self._offer)
            self._threads[spec.text] = thread
            thread.start()
        return thread

    def _stop_idle_threads(self) -> None:
        """Stop the threads of idle destinations: some destinations are used by one run only."""
        for text, thread in list(self._threads.items()):
            if thread.done and text not in self._undelivered:
                thread.stop()
                del self._threads[text]
        running = self._running()
        for run_id in self._environments.run_ids():
            if run_id not in running and not any(t.find(run_id) for t in self._threads.values()):
                self._environments.forget(run_id)
        waiting = {handover.run_id for handover in list(self._to_hand_over)}  # threads add to it
        for run_id in self._requests.keys() - set(running) - waiting:
            if not any(thread.find(run_id) for thread in self._threads.values()):
                del self._requests[run_id]

    # -- relays of other interpreters

    def _offer(self, delivery: RunDelivery) -> bool:
        """Return whether the interpreter of the training delivers what this one cannot.

        Called by a thread.
        """
        handover = Handover.of(delivery.cursor, self._requests.get(delivery.run_id))
        if handover is None:
            return False
        self._handed_over[handover.run_id, handover.destination] = handover
        self._to_hand_over.append(handover)
        return True

    def _hand_over(self) -> None:
        for _ in range(len(self._to_hand_over)):
            handover = self._to_hand_over.popleft()
            fd = self._others.take(handover, handover.run_id in self._running())
            if fd is None:
                self._to_hand_over.append(handover)
            elif fd >= 0:
                self._selector.register(fd, selectors.EVENT_READ)

    def _forward(self, fd: int) -> None:
        """Pass the messages of another relay on to the run's monitor. If it has gone, start it again."""
        handover = self._others.handover(fd)
        messages = self._others.messages(fd)
        if messages is None:
            self._close_other(fd)
            if handover is not None:
                self._to_hand_over.append(handover)
            return
        for message in messages:
            if handover is not None:
                self._send_to_monitor(handover.run_id, message)

    def _close_other(self, fd: int) -> None:
        self._selector.unregister(fd)
        self._others.close(fd)


def delivery_report(cursor: Cursor, done: bool) -> dict[str, object]:
    """Return the state of a delivery, as a trainer's `finish()` shows it."""
    return {
        "destination": cursor.spec.text,
        "delivered": (done and not cursor.held) or cursor.closed == DELIVERED,
        "left": delivery_lag(cursor, _MAX_COUNTED).records + cursor.held_records,
        "samples": cursor.counts["samples"],
        "logs": cursor.counts["logs"],
        "rejected": cursor.counts["rejected"],
        "uploads": cursor.state.get("uploads"),
        "error": cursor.error
        or cursor.held_why
        or cursor.rejection
        or (cursor.closed if cursor.closed != DELIVERED else ""),
    }
