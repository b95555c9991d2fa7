"""W&B's file format, implemented without W&B.

`transaction_log` reads the container, `records` decodes the messages, `encoding` writes both, and `importer`
turns a file into a run.
"""
