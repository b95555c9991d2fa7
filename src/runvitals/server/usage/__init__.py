"""What runs used and what it costs: the figures of docs/operations/usage.md, statements and limits."""
