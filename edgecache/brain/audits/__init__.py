"""Test reads of what operators' nodes deliver.

Door: node_checks, records, rounds.
Imports: common, conf, core, db, directory, edgecache.http, edgecache.protocol, nodes.
"""
