"""How the control database is queried: prepared statements, joined rows, deadlines."""
