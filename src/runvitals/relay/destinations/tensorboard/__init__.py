"""Writes event files for TensorBoard without using it: `records` (bytes), `events` (messages),
`destination`."""
