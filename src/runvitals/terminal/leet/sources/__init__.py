"""Sources of runs for leet: journals, servers, and W&B's files. `run_source` has their interface."""
