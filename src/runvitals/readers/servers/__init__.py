"""Reads the runs of a server in a script or notebook, as `open_run` reads those of this machine.

Uses only the standard library. With NumPy installed, columns are arrays.
"""

from runvitals.model.errors import UnknownRun
from runvitals.readers.servers.client import Client
from runvitals.readers.servers.connection import ServerError
from runvitals.readers.servers.remote_run import RemoteRun

__all__ = ["Client", "RemoteRun", "ServerError", "UnknownRun"]
