"""Answers unmodified MLflow clients: MLflow's REST API over our projects and runs."""
