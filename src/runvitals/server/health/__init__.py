"""What the server watches of itself: space on its disks, its stores, and the servers beside it."""
