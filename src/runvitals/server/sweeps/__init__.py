"""Runs sweeps: the commands for agents, and what their runs achieved."""
