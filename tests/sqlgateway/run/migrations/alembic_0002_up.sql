BEGIN;

-- Running upgrade 0001 -> 0002

CREATE TABLE stars (
    id SERIAL NOT NULL, 
    PRIMARY KEY (id)
);

ALTER TABLE notes ADD COLUMN stars INTEGER NOT NULL;

UPDATE alembic_version SET version_num='0002' WHERE alembic_version.version_num = '0001';

COMMIT;

