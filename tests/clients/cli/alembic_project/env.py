"""Writes migrations as SQL: the tool does not connect to an environment."""

from alembic import context

context.configure(dialect_name="postgresql", literal_binds=True)
with context.begin_transaction():
    context.run_migrations()
