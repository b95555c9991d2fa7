"""What a monitored training run pays, and what it would pay with the peers, all measured in one run.

`scripts/bench overhead [--quick]`; a full run is kept in `benchmarks/RESULTS.md`.
"""
