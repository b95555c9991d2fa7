"""What the store costs, beside its peers: `python -m benchmarks.store`."""
