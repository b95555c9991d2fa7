"""`/organisation/buckets` and `/teams/{team}/storage`. Loads the tables of accounts."""
