"""The monitor: a process beside the training that samples the host and records how the run ends."""
