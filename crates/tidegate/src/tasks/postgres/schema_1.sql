CREATE SCHEMA IF NOT EXISTS $schema;

CREATE TABLE $schema.migrations (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Where each task stands. The columns have the last word about what the text of the state says too.
CREATE TABLE $schema.tasks (
    id text COLLATE "C" PRIMARY KEY,
    -- The order of submission.
    seq bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    -- What the client calls it.
    key text COLLATE "C" UNIQUE,
    fingerprint bytea NOT NULL,
    version bigint NOT NULL,
    -- 0 queued, 1 provisioning, 2 running, 3 succeeded, 4 failed, 5 cancelled.
    status smallint NOT NULL,
    owner text COLLATE "C" NOT NULL,
    -- Which opening of the store by that owner.
    life bigint NOT NULL,
    ended_ms bigint,
    state text NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX tasks_status ON $schema.tasks (status, seq);
CREATE INDEX tasks_owner ON $schema.tasks (owner, seq) WHERE status < 3;
CREATE INDEX tasks_ended ON $schema.tasks (ended_ms) WHERE ended_ms IS NOT NULL;

-- What is to be done: long, and never changed.
CREATE TABLE $schema.specs (
    id text COLLATE "C" PRIMARY KEY,
    spec text NOT NULL
);

CREATE TABLE $schema.outputs (
    id text COLLATE "C" PRIMARY KEY,
    chunks bytea NOT NULL
);

-- The managers, and until when each has said that it is alive.
CREATE TABLE $schema.owners (
    owner text COLLATE "C" PRIMARY KEY,
    alive_until timestamptz NOT NULL
);

-- How many tasks there are in each status: a row for each opening of the store, so that nobody waits for another.
-- The row of life 0 has what those added that are folded into it.
CREATE TABLE $schema.counts (
    life bigint PRIMARY KEY,
    counts bigint[] NOT NULL
);

CREATE SEQUENCE $schema.lives;
