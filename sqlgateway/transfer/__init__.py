"""Results as streams, imports of CSV.

Door: exports, imports, uploads.
Imports: common, errors, formats, pg, run.
"""
