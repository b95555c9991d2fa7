"""Reads the runs of a server: the public name of `runvitals.readers.servers`."""

from runvitals.readers.servers import Client, RemoteRun, ServerError, UnknownRun

__all__ = ["Client", "RemoteRun", "ServerError", "UnknownRun"]
