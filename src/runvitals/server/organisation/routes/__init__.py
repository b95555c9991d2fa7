"""`/organisation/…`: for administrators of a shared server. It loads the tables of accounts."""
