"""Cold storage: the values of old chunks in a bucket or another folder, instead of in the month files.

==================  ====================================================================================
rows                which chunks of a month file are cold, and where their values are
objects             objects: files of many chunks, which go to the bucket and never change
storage             opens the bucket, puts objects there, and fetches those that are read into a cache
mover               the background thread that moves chunks once they are old enough
unused_objects      removes objects from the bucket that no chunk needs any more
==================  ====================================================================================

What finds chunks stays in the month files: their times, summaries and day roll-ups. So charts over weeks,
aggregates over many runs and newest values read nothing from the bucket.

A chunk is moved in four steps, of which each is durable before the next: the log notes that its object may be
in the bucket; the object is put there; in one transaction, the month file refers to it and drops the values;
the log forgets its note. Killed in between, the chunk is as it was, and the note lets the object be removed
later. Objects that no chunk needs any more are noted in the same way, and removed a week later, so that a
backup of the last week can be restored.
"""
