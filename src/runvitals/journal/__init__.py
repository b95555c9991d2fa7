"""The journal: a folder per run, an append-only framed file per writer. All other parts read it."""
