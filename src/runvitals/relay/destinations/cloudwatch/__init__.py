"""Amazon CloudWatch: metrics of neuron-monitor and of runs, folded, selected, and with their price told.

`pipe.py` is `neuron-monitor | runvitals cloudwatch`, `destination.py` the relay's way. Both fold readings
(`fold.py`) into data that keep PutMetricData's limits (`limits.py`), and hand them to `client.py` or
`emf.py`. What is sent is chosen by `selection.py`, what it costs is in `prices.py` and `estimate.py`. The
rest is about where numbers and dimensions come from: `neuron_report.py`, `run_metrics.py`, `dimensions.py`.
"""
