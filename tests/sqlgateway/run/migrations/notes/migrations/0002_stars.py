"""A column that a table with rows cannot get."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """As a person writes it who forgot the rows."""

    dependencies = [("notes", "0001_initial")]
    operations = [
        migrations.RunSQL("CREATE TABLE stars (id int)", "DROP TABLE stars"),
        migrations.RunSQL(
            "ALTER TABLE notes_note ADD COLUMN stars integer NOT NULL",
            "ALTER TABLE notes_note DROP COLUMN stars",
            state_operations=[migrations.AddField("note", "stars", models.IntegerField())],
        ),
    ]
