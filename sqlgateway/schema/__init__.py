"""What a database holds; extensions.

Door: catalogue, extensions.
Stands on: common, errors, models, run.
"""
