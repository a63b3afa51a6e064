"""The second factor: a folder for each factor, challenges, trusted devices.

Door: audit_tags, challenges, conf, errors, factors, models, registry, sent_codes, sign_in, sms,
stored_secrets, tasks, trusted_devices, webauthn.
Imports: accounts, audit, common, environments, oauth, outbox.
"""
