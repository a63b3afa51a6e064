"""Sign-in of a program in a terminal, allowed in a browser."""
