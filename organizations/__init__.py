"""The organization as a whole: its deletion with a delay, and the export of its data."""
