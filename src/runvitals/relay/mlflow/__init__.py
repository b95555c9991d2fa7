"""Delivery to an MLflow tracking server, or to whatever else MLflow's own client can write to.

`destination.py` is the destination; `windows.py` makes MLflow's system metrics of samples; `rest.py` and
`package.py` are the two ways to a tracking store.
"""
