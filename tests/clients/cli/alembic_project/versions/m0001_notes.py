"""A table with types of PostgreSQL's own."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "notes",
        sa.Column("id", sa.Integer, sa.Identity(always=True), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("mood", postgresql.ENUM("calm", "cross", name="mood"), server_default="calm"),
        sa.Column("tags", postgresql.ARRAY(sa.Text)),
        sa.Column("written", sa.DateTime(timezone=True), server_default=sa.func.now()),
    )
    op.create_index("notes_by_time", "notes", [sa.text("written DESC")])
    op.execute("COMMENT ON TABLE notes IS 'one; two'")


def downgrade() -> None:
    """Drop it."""
    op.drop_table("notes")
    op.execute("DROP TYPE mood")
