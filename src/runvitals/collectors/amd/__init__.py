"""AMD GPUs: from the files of the driver in sysfs, and from AMD programs where those tell less."""
