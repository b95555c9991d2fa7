"""Runs sweeps: what agents are told to do, and what their runs achieved."""
