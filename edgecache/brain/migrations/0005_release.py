"""What was released has a table of its own."""

import django.contrib.postgres.fields
from django.db import migrations, models

MOVE = (
    "INSERT INTO brain_release (blobs)"
    " SELECT ARRAY[sha256] FROM brain_blob WHERE released_at IS NOT NULL"
)
MOVE_BACK = (
    "UPDATE brain_blob SET released_at = now()"
    " WHERE sha256 IN (SELECT unnest(blobs) FROM brain_release)"
)


class Migration(migrations.Migration):

    dependencies = [("brain", "0004_host")]

    operations = [
        migrations.CreateModel(
            name="Release",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "blobs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BinaryField(max_length=32), size=None
                    ),
                ),
            ],
        ),
        migrations.RunSQL(MOVE, MOVE_BACK),
        migrations.RemoveIndex(model_name="blob", name="blob_released"),
        migrations.RemoveField(model_name="blob", name="released_at"),
    ]
