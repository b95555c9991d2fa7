"""The library of the journals on this disk."""
