"""What taking in samples over HTTP costs: `python -m benchmarks.ingest`."""
