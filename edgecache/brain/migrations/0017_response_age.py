"""Find the CDN's responses of a bucket by their age; brains write meanwhile."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ("brain", "0016_tables"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="cachedobject",
            index=models.Index(
                condition=models.Q(("http", {}), _negated=True),
                fields=["bucket", "cached_at"],
                name="cached_response_age",
            ),
        ),
    ]
