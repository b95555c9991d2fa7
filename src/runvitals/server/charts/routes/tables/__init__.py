"""Series as tables with a row per time and a column per key, streamed as CSV, Arrow or Parquet.

formats    the format that a request selects
blocks     series, buckets and logged rows as blocks of rows
samples    all samples of a run, one window of time after another
writers    blocks as bytes
responses  the HTTP responses
"""
