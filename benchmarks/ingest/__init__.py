"""Benchmark of ingest over HTTP: `python -m benchmarks.ingest`."""
