"""The runs that a server shows: the interface, over journals (`local`) or over the store (`stored`)."""
