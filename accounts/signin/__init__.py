"""Sign-in: every method ends in `signin.finish`.

Door: credentials, mailbox_proofs, metrics, signin, signup.
Imports: audit, audit_tags, common, environments, errors, mailed_secrets, models, outbox, passwords,
sessions.
"""
