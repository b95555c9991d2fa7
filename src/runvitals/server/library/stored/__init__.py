"""The library of the runs in the store of a shared server."""
