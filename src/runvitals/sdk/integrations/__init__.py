"""What runs inside other people's trainings: MLflow, Lightning, transformers, Keras.

Users import these as `runvitals.mlflow` and `runvitals.callbacks`. The callbacks import no framework: they
use the one that the training has loaded.
"""
