from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('brain', '0003_origin_failures'),
    ]

    operations = [
        migrations.AddField(
            model_name='bucket',
            name='website_error',
            field=models.TextField(blank=True, db_default=''),
        ),
        migrations.AddField(
            model_name='bucket',
            name='website_fallback',
            field=models.BooleanField(db_default=False),
        ),
        migrations.AddField(
            model_name='bucket',
            name='website_index',
            field=models.TextField(blank=True, db_default=''),
        ),
    ]
