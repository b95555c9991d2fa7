"""Doors: routes for clients of other systems, which log to this server as they do to their own.

Each door is a package; it turns what its client sends into envelopes, and stores them with a `DoorRecorder`.
"""
