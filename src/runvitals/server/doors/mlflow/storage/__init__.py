"""The tables of what only MLflow's clients have."""
