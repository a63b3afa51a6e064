"""The managed store: where objects of buckets without an origin are kept."""
