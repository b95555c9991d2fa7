"""The journal: a folder per run, an append-only framed file per writer. The truth that every other part reads."""
