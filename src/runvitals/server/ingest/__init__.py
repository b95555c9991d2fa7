"""Ingest: `POST /api/v1/ingest`, where monitors and other clients send envelopes.

See docs/reference/ingest.md.

An envelope passes through these modules, in this order:

==================  ====================================================================================
endpoint            the ASGI application; limits what is in flight (`admission`, `limits`)
request_body        reads the body, within a size and a time
decompression       content encodings
envelope            decodes MessagePack and JSON
columns             times and values as arrays
metadata_records    events, facts, console output and endings
validation          everything that can be checked before anything is written
sender_rights       which envelopes the key may send, and to which team's run (`envelope_decisions`)
writer_registry     registers writers and their lists of keys
envelope_recorder   writes metadata, then samples
sample_commits      hands samples to the sample store, which commits them (`commit_thread` there)
==================  ====================================================================================

`metadata_commits` writes the metadata of concurrent requests in one transaction, `row_statistics` summarizes
rows of `log()`, `heartbeats` records which writers are alive, `errors` are responses to rejected requests.
"""
