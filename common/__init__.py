"""What every app uses: errors, permissions, principals, scoping, ids, crypto.

Door: archives, commands, conf, control_database, crypto, dns_lookup, egress, emails, errors, etags,
every, fair_limiter, ids, jobs, key_fingerprints, locks, logs, models, names, one_time_secrets,
pending_migrations, permissions, principals, problems, provided, rate_limits, scoping,
server_states, tasks, tracing, version.
"""
