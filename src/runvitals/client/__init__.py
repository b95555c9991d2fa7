"""Reads the runs of a server in a script or notebook, as `open_run` reads those of this machine.

Uses only the standard library. With NumPy installed, columns are arrays.
"""

from runvitals.client.client import Client
from runvitals.client.connection import ServerError
from runvitals.client.remote_run import RemoteRun
from runvitals.model.errors import UnknownRun

__all__ = ["Client", "RemoteRun", "ServerError", "UnknownRun"]
