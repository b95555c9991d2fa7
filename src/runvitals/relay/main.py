"""The entry point of the relay process, which a monitor starts (`monitoring/monitor/relay_connection.py`)."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
import traceback

from runvitals.monitoring.environment import redaction
from runvitals.monitoring.monitor.relay_connection import HELPER, LISTENER_FD
from runvitals.relay.relay import Relay

# Lower priority than the monitor, whose priority is lower than the training's.
NICE = 10


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
        Relay(directory, socket.socket(fileno=LISTENER_FD), is_helper=HELPER in sys.argv[3:]).run()
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
