"""Drop the indexes of foreign keys that other indexes begin with.

Concurrently: brains go on meanwhile. The fields change in Django's state only; ``AlterField`` would
drop and check each foreign key again, with its tables locked.
"""

import django.db.models.deletion
from django.db import migrations, models

# Name, table, column and operator class, for the way back.
INDEXES = (
    ("brain_cachedobject_bucket_id_6d327378", "brain_cachedobject (bucket_id)"),
    ("brain_discardedbytes_store_id_c2757280", "brain_discardedbytes (store_id)"),
    ("brain_filllease_bucket_id_0ddaea1b", "brain_filllease (bucket_id)"),
    ("brain_location_blob_id_c43e6b6e", "brain_location (blob_id)"),
    ("brain_look_node_id_69942a2e", "brain_look (node_id)"),
    ("brain_nodejob_node_id_67f64c0a", "brain_nodejob (node_id)"),
    ("brain_pendingwrite_bucket_id_59fc72fc", "brain_pendingwrite (bucket_id)"),
    ("brain_storedblob_blob_id_e7af5b49", "brain_storedblob (blob_id)"),
    ("brain_storedblob_store_id_1bca0909", "brain_storedblob (store_id)"),
    ("brain_storedobject_bucket_id_5da36ae8", "brain_storedobject (bucket_id)"),
    ("brain_upload_bucket_id_123d43c1", "brain_upload (bucket_id)"),
    ("brain_uploadpart_upload_id_ee97c0e1", "brain_uploadpart (upload_id)"),
    (
        "brain_uploadpart_upload_id_ee97c0e1_like",
        "brain_uploadpart (upload_id varchar_pattern_ops)",
    ),
)
FIELDS = (
    ("cachedobject", "bucket", "bucket", django.db.models.deletion.CASCADE),
    ("discardedbytes", "store", "store", django.db.models.deletion.PROTECT),
    ("filllease", "bucket", "bucket", django.db.models.deletion.CASCADE),
    ("location", "blob", "blob", django.db.models.deletion.CASCADE),
    ("look", "node", "node", django.db.models.deletion.CASCADE),
    ("nodejob", "node", "node", django.db.models.deletion.CASCADE),
    ("pendingwrite", "bucket", "bucket", django.db.models.deletion.CASCADE),
    ("storedblob", "blob", "blob", django.db.models.deletion.PROTECT),
    ("storedblob", "store", "store", django.db.models.deletion.PROTECT),
    ("storedobject", "bucket", "bucket", django.db.models.deletion.CASCADE),
    ("upload", "bucket", "bucket", django.db.models.deletion.CASCADE),
    ("uploadpart", "upload", "upload", django.db.models.deletion.CASCADE),
)


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ("brain", "0001_squashed_0014"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {columns}",
                )
                for name, columns in INDEXES
            ],
            state_operations=[
                migrations.AlterField(
                    model_name=model,
                    name=name,
                    field=models.ForeignKey(db_index=False, on_delete=rule, to=f"brain.{target}"),
                )
                for model, name, target, rule in FIELDS
            ],
        ),
    ]
