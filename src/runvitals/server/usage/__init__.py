"""Usage of runs and its costs: the figures of docs/operations/usage.md, statements and limits."""
