"""What runs used and what that costs: the figures of docs/operations/usage.md, as pure functions.

Nothing here reads a store, a clock or a setting: callers pass samples, intervals, prices and the time zone.
"""
