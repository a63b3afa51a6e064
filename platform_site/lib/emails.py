"""E-mail addresses, compared."""


def folded(email: str) -> str:
    """Give an address as it is compared and counted: trimmed, A to Z without regard to case.

    No other letters: by Unicode's rules a dotless i and a long s have the capitals of ``i`` and
    ``s``, which would make one of two people's mailboxes (a domain with a dotless i is one of its
    own), and give who guesses a password as many counters as there are spellings.
    """
    return email.strip().encode(errors="replace").lower().decode()
