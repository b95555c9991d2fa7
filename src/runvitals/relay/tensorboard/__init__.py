"""Event files for TensorBoard, written without it: `records` (bytes), `events` (messages), `destination`."""
