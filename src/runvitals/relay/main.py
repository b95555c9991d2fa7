"""The relay process: its entry point, and the main thread that decides which runs to deliver and when to
exit.

Started by a run's monitor (`monitor/relay_connection.py`) or as `runvitals relay`. There is one per user
and data folder. Each destination has its own thread (`engine/delivery_thread.py`).
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Collection
from typing import Any

from runvitals.environment import redaction
from runvitals.journal import paths
from runvitals.journal.json_codec import dumps, loads
from runvitals.model.numbers import parse_number
from runvitals.monitor.relay_connection import DOOR_FD, own_variables
from runvitals.monitor.socket_address import is_ours
from runvitals.relay.engine.credentials import named_here, of_left_behind
from runvitals.relay.engine.cursor import Cursor, cursors_of
from runvitals.relay.engine.delivery import DELIVERED, RunDelivery
from runvitals.relay.engine.delivery_lag import delivery_lag
from runvitals.relay.engine.delivery_thread import DeliveryThread
from runvitals.relay.engine.destination_spec import DestinationSpec

# Lower priority than the monitor, whose priority is lower than the training's.
NICE = 10
TICK_S = 1.0
# How long a relay without running runs keeps trying to deliver what is left. After that, it is left to the
# next relay, or to `runvitals sync`.
KEEP_TRYING_S = 3600.0
# How long the relay waits before it exits when there is nothing to do: a job may start one run after the
# other.
LINGER_S = 5.0
# A cursor of another host is taken over if its lock is free and it was not written for this long.
FOREIGN_AGE_S = 900.0
# How many destinations of left-behind runs are served at once. Running runs are always served.
MOST_COURIERS = 16
_LONGEST_LINE = 16 * 1024 * 1024
_MOST_AT_ONCE = 64  # connections accepted per iteration: other users may open them without end
# How many undelivered records are counted for a trainer's `finish()`: takes 0.1 s.
_LEFT_AT_MOST = 10_000
_FLUSH_S = 10.0


def main() -> None:
    """Run a relay on the listening socket inherited from the parent process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    os.umask(0o077)
    os.chdir("/")
    lower_priority()
    directory = sys.argv[2]
    try:
        Relay(directory, socket.socket(fileno=DOOR_FD)).run()
    except Exception:
        # The relay's stderr goes nowhere.
        with open(os.path.join(directory, "relay.log"), "a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} the relay failed\n")
            log.write(redaction.text(traceback.format_exc()))
        raise


def lower_priority() -> None:
    """Lower our CPU priority, and set the process name that tools show."""
    try:
        os.nice(max(0, NICE - os.nice(0)))
        with open("/proc/self/comm", "w") as comm:
            comm.write("runvitals-relay")
    except OSError:
        return  # a container may forbid either; neither is required


class RelayClient:
    """A connection from a monitor, or from a process that sends a query."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.runs: set[str] = set()
        self._buffer = b""
        self._lock = threading.Lock()

    def messages(self) -> list[Any] | None:
        """The messages received; None if the connection was closed or sent an invalid message."""
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        if not data or len(self._buffer) > _LONGEST_LINE:
            return None
        try:
            return [loads(line) for line in lines if line]
        except ValueError:
            return None

    def send(self, message: dict[str, object]) -> None:
        """Send a message. A client that has disconnected, or does not read, misses it."""
        with self._lock:
            try:
                self.sock.sendall(dumps(message) + b"\n")
            except OSError:
                return


class Relay:
    """Serves every run of a data folder that has a destination.

    Args:
        directory: the data folder.
        door: the listening socket.
        linger_s, keep_trying_s: see `LINGER_S` and `KEEP_TRYING_S`; infinite: forever.
    """

    def __init__(
        self,
        directory: str,
        door: socket.socket,
        linger_s: float = LINGER_S,
        keep_trying_s: float = KEEP_TRYING_S,
    ) -> None:
        self.directory = directory
        self.door = door
        self.host = own_host()
        self._linger_s = linger_s
        self._keep_trying_s = keep_trying_s
        self._couriers: dict[str, DeliveryThread] = {}
        self._lines: dict[int, RelayClient] = {}
        self._environs: dict[str, dict[str, str]] = {}
        self._heard: set[str] = set()  # runs whose training has sent its variables
        # Destinations whose full text is known: cursors on disk leave out secrets.
        self._known: dict[str, DestinationSpec] = {spec.text: spec for spec in named_here(os.environ)}
        self._left = left_behind(directory, self.host, self._known.values())
        self._wanted: list[tuple[Cursor, bool]] = []
        self._ending = False
        self._busy_s = self._lined_s = time.monotonic()
        self._selector = selectors.DefaultSelector()
        door.setblocking(False)
        self._selector.register(door, selectors.EVENT_READ)

    def run(self) -> None:
        """Serve until there is nothing left to do, or until SIGTERM."""
        wake, woken = os.pipe()
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda number, frame: self._end())
        self._selector.register(wake, selectors.EVENT_READ)
        while not self._ending:
            for key, _ in self._selector.select(TICK_S):
                if key.fileobj is self.door:
                    self._accept()
                elif key.fd in self._lines:
                    self._hear(self._lines[key.fd])
            self._take_up()
            self._dismiss()
            if self._is_time_to_go() or (not self._lines and self._is_deleted()):
                break
        self.door.close()
        for courier in self._couriers.values():
            courier.end()
        for courier in self._couriers.values():
            courier.join()

    def _end(self) -> None:
        self._ending = True

    def _is_time_to_go(self) -> bool:
        now_s = time.monotonic()
        idle = not self._left and not self._wanted and all(one.idle for one in self._couriers.values())
        if self._lines or not idle:
            self._busy_s = now_s
        if self._lines:
            self._lined_s = now_s
        return now_s - self._busy_s > self._linger_s or now_s - self._lined_s > self._keep_trying_s

    def _is_deleted(self) -> bool:
        """Whether the data folder is gone: nothing is left to deliver, nor a place for a log."""
        try:
            os.stat(self.directory)
        except FileNotFoundError:
            return True
        except OSError:
            return False  # a network file system that does not answer may come back
        return False

    # -- which runs are served

    def _accept(self) -> None:
        for _ in range(_MOST_AT_ONCE):
            try:
                sock, _ = self.door.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            if not is_ours(sock):
                sock.close()
                continue
            self._lines[sock.fileno()] = RelayClient(sock)
            self._selector.register(sock, selectors.EVENT_READ)

    def _hear(self, line: RelayClient) -> None:
        messages = line.messages()
        if messages is None:
            self._selector.unregister(line.sock)
            del self._lines[line.sock.fileno()]
            line.sock.close()
            for run_id in line.runs - {run for other in self._lines.values() for run in other.runs}:
                for courier in self._couriers.values():
                    courier.set_live(run_id, False)
            return
        for message in messages:
            self._obey(line, message)

    def _obey(self, line: RelayClient, message: dict[str, Any]) -> None:
        op = message.get("op")
        if op == "serve":
            line.runs.add(str(message["run"]))
            self._hear_environ(message)
            for text in message["destinations"]:
                self.serve(str(message["run"]), DestinationSpec(str(text)), str(message.get("cwd", "")))
        elif op == "flush":
            timeout_s = parse_number(str(message.get("timeout_s")), 0.0, KEEP_TRYING_S)
            arguments = (line, str(message["run"]), _FLUSH_S if timeout_s is None else timeout_s)
            threading.Thread(target=self._flush, args=arguments, daemon=True).start()
        elif op == "hello":
            line.send({"op": "hello", "pid": os.getpid(), "runs": self._served()})

    def _hear_environ(self, message: dict[str, Any]) -> None:
        """Remember the environment variables of a run's training for its destinations."""
        environ = self._environs.setdefault(str(message["run"]), {})
        theirs = own_variables(message["destinations"], os.environ)
        environ.clear()
        environ.update({name: text for name, text in os.environ.items() if name not in theirs})
        environ.update(message.get("environ", {}))
        self._heard.add(str(message["run"]))

    def _environ_of(self, run_id: str, spec: DestinationSpec) -> dict[str, str]:
        """The environment of a run's destinations: its training's variables, once they were received."""
        environ = self._environs.get(run_id)
        if environ is None:
            environ = self._environs[run_id] = dict(os.environ)
        if run_id not in self._heard:
            for name in environ.keys() - of_left_behind(spec.text, environ).keys():
                del environ[name]
        return environ

    def _served(self) -> list[str]:
        return sorted({run for line in self._lines.values() for run in line.runs})

    def serve(self, run_id: str, spec: DestinationSpec, cwd: str) -> None:
        """Deliver a running run. Its cursor is saved at once, so that a later relay finds it."""
        self._known[spec.text] = spec
        courier = self._courier(spec)
        if courier.find(run_id) is not None:
            courier.set_live(run_id, True)
            return
        cursor = Cursor(paths.run_dir(run_id, self.directory), spec, self.host)
        cursor.cwd = cwd
        self._wanted.append((cursor, True))
        self._take_up()

    def _take_up(self) -> None:
        """Start serving runs whose lock has become free, and left-behind runs one at a time."""
        wanted, self._wanted = self._wanted, []
        for cursor, live in wanted:
            if not self._take(cursor, live):
                self._wanted.append((cursor, live))
        for text, cursors in list(self._left.items()):
            if text not in self._couriers and len(self._couriers) >= MOST_COURIERS:
                continue
            courier = self._courier(DestinationSpec(text))
            while cursors and courier.idle:
                self._take(cursors.pop(0), False)
            if not cursors:
                del self._left[text]

    def _take(self, cursor: Cursor, live: bool) -> bool:
        """Pass a run to the thread of its destination; False if another process is delivering it."""
        cwd = cursor.cwd
        run_id = os.path.basename(cursor.folder)
        live = live and any(run_id in line.runs for line in self._lines.values())
        try:
            if not cursor.lock():
                return False
            if live:
                cursor.closed, cursor.cwd = "", cwd or cursor.cwd
                cursor.save()
            elif cursor.closed:
                cursor.unlock()
                return True
            environ = self._environ_of(run_id, cursor.spec)
            delivery = RunDelivery(cursor, lambda text: self._request_stop(run_id, text), environ)
        except OSError:
            cursor.unlock()
            return True  # the run was deleted, or its disk is full: the position could not be saved
        delivery.live = live
        self._courier(cursor.spec).serve(delivery)
        return True

    def _courier(self, spec: DestinationSpec) -> DeliveryThread:
        courier = self._couriers.get(spec.text)
        if courier is None:
            courier = self._couriers[spec.text] = DeliveryThread(spec.text, tell=self._tell)
            courier.start()
        return courier

    def _dismiss(self) -> None:
        """Stop the threads of idle destinations: with some, every run has a destination of its own."""
        for text, courier in list(self._couriers.items()):
            if courier.idle and text not in self._left:
                courier.end()
                del self._couriers[text]
        served = self._served()
        for run_id in [one for one in self._environs if one not in served]:
            if not any(courier.find(run_id) for courier in self._couriers.values()):
                del self._environs[run_id]
                self._heard.discard(run_id)

    # -- replies and forwarded messages

    def _flush(self, line: RelayClient, run_id: str, timeout_s: float) -> None:
        """Reply when a run is delivered, or when the time is up."""
        until_s = time.monotonic() + timeout_s
        reports: dict[str, dict[str, object]] = {}
        for courier in list(self._couriers.values()):
            delivery = courier.find(run_id)
            if delivery is not None:
                done = courier.flush(run_id, max(until_s - time.monotonic(), 0.0))
                reports[delivery.cursor.spec.text] = report(delivery.cursor, done)
        for cursor in cursors_of(paths.run_dir(run_id, self.directory), self._known.values()):
            if cursor.host == self.host:  # delivered completely, and no longer served
                reports.setdefault(cursor.spec.text, report(cursor, False))
        line.send({"op": "flushed", "run": run_id, "destinations": list(reports.values())})

    def _request_stop(self, run_id: str, text: str) -> None:
        self._pass_on(run_id, {"op": "stop", "text": text})

    def _tell(self, run_id: str, text: str) -> None:
        self._pass_on(run_id, {"op": "event", "name": "not_delivered", "text": redaction.text(text)})

    def _pass_on(self, run_id: str, message: dict[str, object]) -> None:
        for line in list(self._lines.values()):
            if run_id in line.runs:
                line.send(message)


def report(cursor: Cursor, done: bool) -> dict[str, object]:
    """The state of one destination, as a trainer's `finish()` shows it."""
    return {
        "destination": cursor.spec.text,
        "delivered": (done and not cursor.held) or cursor.closed == DELIVERED,
        "left": delivery_lag(cursor, _LEFT_AT_MOST).records + cursor.held_records,
        "samples": cursor.counts["samples"],
        "logs": cursor.counts["logs"],
        "rejected": cursor.counts["rejected"],
        "error": cursor.error
        or cursor.held_why
        or cursor.rejection
        or (cursor.closed if cursor.closed != DELIVERED else ""),
    }


def own_host() -> str:
    """This host's name as it appears in writer names."""
    return paths.safe_name(socket.gethostname() or "localhost")


def left_behind(directory: str, host: str, known: Collection[DestinationSpec]) -> dict[str, list[Cursor]]:
    """Runs that are not completely delivered, by destination: of this host, and of hosts that seem to be
    gone. A destination with a secret in its address is only included if it is in `known`."""
    found: dict[str, list[Cursor]] = {}
    try:
        runs = sorted(os.listdir(paths.runs_dir(directory)))
    except FileNotFoundError:
        return found
    for run_id in runs:
        for cursor in cursors_of(os.path.join(paths.runs_dir(directory), run_id), known):
            if cursor.spec.is_whole and not cursor.closed and (cursor.host == host or _is_old(cursor.path)):
                found.setdefault(cursor.spec.text, []).append(cursor)
    return found


def _is_old(path: str) -> bool:
    try:
        return time.time() - os.stat(path).st_mtime > FOREIGN_AGE_S
    except FileNotFoundError:
        return False
