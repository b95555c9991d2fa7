"""Runs in W&B: `account` (where, and with which key), `lines` (what its files hold), `service` (its HTTP
interface), `offline` (its files), `destination`.
"""
