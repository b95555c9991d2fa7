"""Delivery to W&B.

Modules: `account.py` (address and API key), `lines.py` (lines of its files), `http_api.py`, `online.py` and
`offline.py` (a run at a server, or in a file), `destination.py`.
"""
