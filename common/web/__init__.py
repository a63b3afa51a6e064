"""Clients' addresses and presence, slots, cookies.

Door: addresses, client_presence, compute_slots, cookies, hostnames, large_answers, server_end.
Imports: common.
"""
