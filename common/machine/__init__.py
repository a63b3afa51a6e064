"""Files, folders, ports, child processes, PostgreSQL's programs, without Django.

Door: child, errors, files, folders, owners, ports, postgres_programs, reasons, systemd, terminal.
"""
