"""Imports runs of other systems: from a W&B server, an MLflow store, and TensorBoard's event files."""
