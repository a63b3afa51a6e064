"""What a database holds; extensions.

Door: catalogue, extensions.
Imports: common, errors, models, run.
"""
