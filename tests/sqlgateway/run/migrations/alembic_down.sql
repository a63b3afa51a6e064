BEGIN;

-- Running downgrade 0002 -> 0001

ALTER TABLE notes DROP COLUMN stars;

DROP TABLE stars;

UPDATE alembic_version SET version_num='0001' WHERE alembic_version.version_num = '0002';

-- Running downgrade 0001 -> 

DROP TABLE notes;

DROP TYPE mood;

DELETE FROM alembic_version WHERE alembic_version.version_num = '0001';

COMMIT;

