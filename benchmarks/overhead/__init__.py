"""What a monitored training run pays, and what it would pay with the peers, all measured in one run.

`python -m benchmarks.overhead [--quick]`; a full run writes `benchmarks/RESULTS.md`.
"""
