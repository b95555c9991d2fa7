"""W&B's files, read without W&B.

`transaction_log` (bytes), `records` (messages), `importing` (into a journal).
"""
