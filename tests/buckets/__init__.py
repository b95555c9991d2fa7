"""Object stores on loopback that check signatures as the real ones do, and that can fail."""
