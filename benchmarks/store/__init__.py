"""Benchmark of the sample store and others: `python -m benchmarks.store`."""
