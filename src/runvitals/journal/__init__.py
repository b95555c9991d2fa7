"""The journal: a folder per run with append-only files of checksummed frames.

There is one series of files per writer.
"""
