"""Writes TensorBoard event files without using TensorBoard.

Modules: `tfrecords.py` (the container), `event_messages.py` (the messages), `destination.py`.
"""
