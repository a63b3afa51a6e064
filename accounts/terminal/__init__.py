"""Sign-in of a program in a terminal.

Door: terminal_sign_ins, views.
Imports: audit, audit_tags, common, environments, errors, models, outbox, serializers, sessions,
signin.
"""
