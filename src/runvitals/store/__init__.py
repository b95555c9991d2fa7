"""Where the samples of many runs lie: the contract (`contract`) and the stores that keep it.

`sqlite_chunks` is the one that needs no server: a folder of SQLite files.
"""
