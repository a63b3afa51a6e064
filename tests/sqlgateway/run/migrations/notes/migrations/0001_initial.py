"""A table with an index."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """As makemigrations writes it."""

    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("text", models.TextField()),
                ("written", models.DateTimeField(auto_now_add=True, db_index=True)),
            ],
        )
    ]
