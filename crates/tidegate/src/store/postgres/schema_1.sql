CREATE SCHEMA IF NOT EXISTS $schema;

CREATE TABLE $schema.migrations (
    version integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- Every record once, as it came. A block range index costs next to nothing and suits rows that come in time.
CREATE TABLE $schema.records (
    time_ns bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    meter text COLLATE "C" NOT NULL,
    quantity numeric NOT NULL,
    labels text NOT NULL,
    amount numeric NOT NULL,
    currency text COLLATE "C" NOT NULL,
    tariff text NOT NULL,
    fallback smallint NOT NULL
);
CREATE INDEX records_time ON $schema.records USING brin (time_ns);

-- Sums by the minute. Each append adds its own rows, so that writers never wait for each other; from time to
-- time those of past minutes are folded into one.
CREATE TABLE $schema.sums (
    minute_ns bigint NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    meter text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,
    records bigint NOT NULL,
    fallbacks bigint NOT NULL,
    quantity numeric NOT NULL,
    amount numeric NOT NULL,
    folded boolean NOT NULL
);
CREATE INDEX sums_minute ON $schema.sums (minute_ns);
CREATE INDEX sums_pair ON $schema.sums (tenant, meter, minute_ns);
CREATE INDEX sums_unfolded ON $schema.sums (minute_ns) WHERE NOT folded;

-- The numbers of the batches that each sender has sent.
CREATE TABLE $schema.senders (
    name text COLLATE "C" PRIMARY KEY,
    numbers bytea NOT NULL,
    last_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- For people: the same records with a time that reads well, to the microsecond.
CREATE VIEW $schema.usage AS
SELECT
    timestamptz 'epoch' + (time_ns / 1000) * interval '1 microsecond' AS time,
    tenant, meter, quantity, labels, amount, currency, tariff,
    CASE fallback
        WHEN 1 THEN 'unknown_meter'
        WHEN 2 THEN 'not_in_effect'
        WHEN 3 THEN 'no_window'
        WHEN 4 THEN 'out_of_range'
        WHEN 5 THEN 'no_tier'
    END AS fallback
FROM $schema.records;
