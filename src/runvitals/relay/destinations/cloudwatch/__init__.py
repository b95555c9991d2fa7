"""Amazon CloudWatch: metrics of neuron-monitor and of runs, with the cost of sending them.

`pipe.py` is `neuron-monitor | runvitals cloudwatch`, `destination.py` the relay's destination. Both aggregate
readings (`minute_aggregation.py`) into data within PutMetricData's limits (`limits.py`) and send them through
`client.py` or `emf.py`. `metric_selection.py` selects the metrics; `estimate.py` computes their cost from
`prices.py`. Values and dimensions come from `neuron_report.py`, `run_metrics.py` and `dimensions.py`.
"""
