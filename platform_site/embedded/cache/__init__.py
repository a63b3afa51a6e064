"""The edge cache's part of `up`."""
