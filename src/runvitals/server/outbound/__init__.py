"""Requests to addresses that users or settings name, without letting them reach what is inside the network.

A URL that a user gives makes the server send a request. Without a check, it would fetch the cloud's metadata
service or a neighbour's database for any user. `Fetcher` resolves names itself, checks every address, and
connects to the address that was checked:

    >>> fetcher = Fetcher(OutboundPolicy)
    >>> fetcher.get("https://img.shields.io/badge/build-passing-green").status
    200
"""
