"""The local server: the API over the journals of a data folder, and the page."""

from runvitals.server.app import create_app

__all__ = ["create_app"]
