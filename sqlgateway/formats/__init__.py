"""PostgreSQL's text to JSON, NDJSON, CSV and Arrow.

Door: arrow_batches, column_types, csv_lines, encoders, ndjson, results, row_writer.
Imports: common, errors.
"""
