"""AMD GPUs: read from the driver's files in sysfs, and from AMD's programs for what sysfs lacks."""
