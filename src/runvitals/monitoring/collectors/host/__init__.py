"""The sources of every Linux host, from /proc and /sys."""
