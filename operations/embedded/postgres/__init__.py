"""The embedded PostgreSQL clusters: binaries, data folders, servers."""
