"""Results as streams, imports of CSV.

Door: exports, imports, uploads.
Stands on: common, errors, formats, pg, run.
"""
