"""Known nodes: health, placement, replication, repair, tickets.

Door: client, endpoints, health, known_nodes, node_jobs, node_rows, regions, registration, repair,
replica_plan, replication, tickets.
Imports: common, conf, core, db, directory, edgecache.http, edgecache.protocol,
edgecache.runtime, stores.
"""
