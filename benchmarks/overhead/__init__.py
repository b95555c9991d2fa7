"""The overhead of runvitals on a training, compared with other tools, measured in one session.

Run with `scripts/bench overhead [--quick]`. Full results are recorded in `benchmarks/RESULTS.md`.
"""
