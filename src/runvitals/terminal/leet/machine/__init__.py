"""The screen of this machine without a run: meters, charts, and processes with their use of GPUs."""
