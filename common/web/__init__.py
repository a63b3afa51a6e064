"""Clients' addresses and presence, slots, cookies.

Door: addresses, client_presence, compute_slots, connection_counts, cookies, hostnames, pace,
server_end.
Imports: common.
"""
