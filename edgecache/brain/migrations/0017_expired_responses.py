"""Find the CDN's responses that expired long ago; brains write meanwhile."""

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
                condition=models.Q(("variant__gt", "")),
                fields=["cached_at"],
                name="cached_variant_age",
            ),
        ),
    ]
