"""Work of the server beside requests: housekeeping, the trash, statistics."""
