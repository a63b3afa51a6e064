"""The coordination node: its command, its wiring.

Door: local_setup, router.
Stands on: common, http, local_nodes, protocol, runtime.
"""
