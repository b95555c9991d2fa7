"""Starts the monitor when it is run as a program, with the folder of this package's sources as its argument.

`launch` runs the compiled file, because Python then needs no compiler: that saves a monitor 0.27 MB.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the monitor from the folder in the first argument."""
    sys.path.append(sys.argv[1])
    from runvitals.monitoring.monitor.main import main as monitor

    monitor()


if __name__ == "__main__":
    main()
