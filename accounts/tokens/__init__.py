"""The bytes of tokens, and the keys that sign them.

Door: development, session_tokens, signing.
Imports: common, environments, errors, models.
"""
