"""The commands on the pages that the tests do not run, and why."""

from typing import Final

MACHINE: Final = "It changes the machine: services, containers or users."
PROJECT: Final = "It runs, builds or installs the project itself, as CI does."
TESTED: Final = (
    "It acts on what its own tests prepare; test_command_lines.py parses it as it is printed."
)
INSTALLED: Final = "test_client_installation.py runs its first two lines."
TERMINAL: Final = "It asks at a terminal or in a browser; test_command_lines.py parses it."
SETTING: Final = "A setting's value, not a command."

# What a block begins with.
PROGRAMS: Final[dict[str, str]] = {
    **dict.fromkeys(("systemctl ", "docker ", "useradd ", "pgbackrest ", "dpkg-divert "), MACHINE),
    "make ": PROJECT,
    "python3 -m venv venv && . venv/bin/activate\npip install ": INSTALLED,
    **dict.fromkeys(("manage.py ", ".venv/bin/python manage.py "), TESTED),
    "zonal login ": TERMINAL,
}
# A page and what is in the block's text.
NOT_RUN: Final[dict[tuple[str, str], str]] = {
    ("docs/backup.md", "ZBACKUP_URL="): SETTING,
    ("docs/cache.md", "npm run server"): "It runs another project's test suite.",
    ("docs/earnings.md", "top-ups"): "It opens a page of Stripe's, which is not configured here.",
    ("docs/earnings.md", "billing.verify_statement"): TESTED,
    ("docs/encryption.md", "ZBRAIN_ENCRYPTED_AT_REST="): SETTING,
    ("docs/production.md", "make-secrets.sh"): MACHINE,
    ("docs/teams.md", "GITHUB_ROLES"): SETTING,
    ("docs/teams.md", "DISCORD_ROLES"): SETTING,
    ("docs/worker.md", "edgecache.worker"): PROJECT,
}


def reason(page: str, text: str) -> str:
    """Return why a block is not run, '' if it is."""
    by_program = (why for program, why in PROGRAMS.items() if text.startswith(program))
    found = (why for (where, part), why in NOT_RUN.items() if where == page and part in text)
    return next(by_program, "") or next(found, "")
