"""Clients' addresses and presence, slots, cookies.

Door: addresses, client_presence, cookies, hostnames, large_answers, server_end.
Imports: common.
"""
