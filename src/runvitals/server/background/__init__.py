"""What the server does beside requests: housekeeping, the trash, statistics."""
