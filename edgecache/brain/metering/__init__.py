"""Counts of reads, receipts, statistics.

Door: creditable_reads, hourly_counts, latencies, meters, operator_networks, prometheus, receipts,
statistics, usage_lines.
Imports: common, conf, core, db, edgecache.http, edgecache.protocol, nodes.
"""
