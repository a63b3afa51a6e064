BEGIN;

CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TYPE mood AS ENUM ('calm', 'cross');

CREATE TABLE notes (
    id INTEGER GENERATED ALWAYS AS IDENTITY, 
    text TEXT NOT NULL, 
    mood mood DEFAULT 'calm', 
    tags TEXT[], 
    written TIMESTAMP WITH TIME ZONE DEFAULT now(), 
    PRIMARY KEY (id)
);

CREATE INDEX notes_by_time ON notes (written DESC);

INSERT INTO alembic_version (version_num) VALUES ('0001') RETURNING alembic_version.version_num;

COMMIT;

