"""The coordination node: its command, its wiring.

Door: local_setup, router.
Imports: common, http, local_nodes, protocol, runtime.
"""
