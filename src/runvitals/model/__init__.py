"""Runs, records, metrics and filters: shared by journal readers, the stores, the server and the relay.

`run`, `state`, `ending` and `host` describe a run. `records`, `names`, `values` and `limits` define
which records are valid: what is not valid is corrected before it is written, and corrected in the same way
where an older journal is read, so that every reader shows the same.
"""
