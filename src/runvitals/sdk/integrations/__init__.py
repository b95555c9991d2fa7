"""Integrations with MLflow, Lightning, transformers and Keras, which run inside the training.

Users import these as `runvitals.mlflow` and `runvitals.callbacks`. The callbacks import no framework: they
use the one that the training has loaded.
"""
