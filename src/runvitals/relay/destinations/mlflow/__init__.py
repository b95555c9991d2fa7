"""Delivery to an MLflow tracking server, or to any other tracking store that MLflow's own client supports.

`destination.py` is the destination; `system_metrics.py` computes MLflow's system metrics from samples;
`rest_store.py` and `client_store.py` implement a tracking store over REST and with MLflow's client.
"""
