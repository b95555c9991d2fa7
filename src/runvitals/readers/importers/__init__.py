"""Imports runs of other systems: W&B servers, MLflow, TensorBoard, Neptune, trackio, CSV files."""
