"""What every app uses: errors, permissions, principals, scoping, ids, crypto.

Door: archives, commands, conf, crypto, dns_lookup, egress, emails, errors, etags, fair_limiter,
ids, jobs, key_fingerprints, locks, logs, models, names, one_time_secrets, permissions, principals,
problems, provided, rate_limits, scoping, tasks, tracing, version.
"""
