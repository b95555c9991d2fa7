"""Where leet reads runs: journals, servers, and W&B's files. `run_source` says what all of them offer."""
