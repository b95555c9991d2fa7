"""Runs in W&B: `account` (address and API key), `lines` (what its files contain), `service` (its HTTP API),
`offline` (its file format), `destination`.
"""
