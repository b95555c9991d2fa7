"""Runs of many kinds of work on many kinds of machines, each with what may be said of it."""
