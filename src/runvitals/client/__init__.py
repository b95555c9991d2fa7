"""Runs of a server, in a script or a notebook: what `open_run` gives of this machine, from anywhere.

Standard library only; with NumPy, columns are arrays.
"""

from runvitals.client.client import Client
from runvitals.client.connection import ServerError
from runvitals.client.remote_run import RemoteRun
from runvitals.query.run_handle import UnknownRun

__all__ = ["Client", "RemoteRun", "ServerError", "UnknownRun"]
