"""What is valid in a record: one definition for SDK, journal, relay and server.

Whatever keeps these rules is taken by every reader and by the server. What breaks them is mended before it
is written (`Mending`, `mended_name`, `mended_step`), and mended in the same way where an older journal is
read, so that every place shows the same.
"""
