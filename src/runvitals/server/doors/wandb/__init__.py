"""Answers unmodified wandb clients: GraphQL, the stream of a run's lines, and uploads of files."""
