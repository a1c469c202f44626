-- Sums of all tenants by the minute, meter and client: what a query over all tenants reads, however many there are.
-- The database adds to them with each sum, also for a writer from before there were any.
CREATE TABLE $schema.totals (
    minute_ns bigint NOT NULL,
    meter text COLLATE "C" NOT NULL,
    client text COLLATE "C" NOT NULL,
    currency text COLLATE "C" NOT NULL,
    records bigint NOT NULL,
    fallbacks bigint NOT NULL,
    quantity numeric NOT NULL,
    amount numeric NOT NULL,
    folded boolean NOT NULL
);
CREATE INDEX totals_minute ON $schema.totals (minute_ns);
CREATE INDEX totals_meter ON $schema.totals (meter, minute_ns);
CREATE INDEX totals_unfolded ON $schema.totals (minute_ns) WHERE NOT folded;

-- Rows that are folded were counted before.
CREATE FUNCTION $schema.add_totals() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    INSERT INTO $schema.totals
    SELECT minute_ns, meter, client, currency, sum(records)::bigint, sum(fallbacks)::bigint,
        sum(quantity), sum(amount), false
    FROM added WHERE NOT folded GROUP BY minute_ns, meter, client, currency;
    RETURN NULL;
END
$body$;

-- Locks the sums until those from before are added up.
CREATE TRIGGER sums_totals AFTER INSERT ON $schema.sums
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION $schema.add_totals();

INSERT INTO $schema.totals
SELECT minute_ns, meter, client, currency, sum(records)::bigint, sum(fallbacks)::bigint,
    sum(quantity), sum(amount), true
FROM $schema.sums GROUP BY minute_ns, meter, client, currency;
