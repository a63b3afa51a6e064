"""Metrics of a process.

Door: connections, exposition, figures, http, http_tally, organization_tally, publishing, tasks.
Imports: common, machine.
"""
