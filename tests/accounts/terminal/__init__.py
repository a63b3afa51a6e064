"""Sign-in of a program at a terminal."""
