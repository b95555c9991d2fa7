"""The tables of buckets."""
