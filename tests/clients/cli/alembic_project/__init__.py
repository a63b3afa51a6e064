"""A tenant's project of Alembic; its tool reads the rest of this folder."""
