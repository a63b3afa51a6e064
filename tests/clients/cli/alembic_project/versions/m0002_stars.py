"""A second table, and a column that rows of the first one refuse."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create and add them."""
    op.create_table("stars", sa.Column("id", sa.Integer, primary_key=True))
    op.add_column("notes", sa.Column("stars", sa.Integer, nullable=False))


def downgrade() -> None:
    """Take them back."""
    op.drop_column("notes", "stars")
    op.drop_table("stars")
