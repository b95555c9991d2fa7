"""The public names for packages that add the devices of a vendor."""
