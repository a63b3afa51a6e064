"""The data directory: unfinished bodies, copies that may be lost, and the budget of the disk.

Door: buffers, data_directory, digests, syncing.
Imports: common, core, edgecache.runtime.
"""
