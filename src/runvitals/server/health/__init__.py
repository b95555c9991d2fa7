"""The health of the server: space on its disks, its stores, and the servers beside it."""
