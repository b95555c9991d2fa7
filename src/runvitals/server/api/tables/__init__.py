"""Series as tables: one row per time, one column per key; written as CSV, Arrow or Parquet, piece by piece.

formats    which form a request asks for
blocks     series, buckets and calls put into rows, a bounded number at a time
samples    every sample of a run, window by window
writing    rows as bytes
"""
