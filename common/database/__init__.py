"""The control database: joined reads, deadlines.

Door: joined_rows, prepared, request_deadline.
Imports: common.
"""
