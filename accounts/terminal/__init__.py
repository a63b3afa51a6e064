"""Sign-in of a program at a terminal, allowed in a browser."""
