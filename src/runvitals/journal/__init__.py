"""The journal: a folder per run, with append-only files of checksummed frames, one series of files per
writer.
"""
