-- The client that owns the name of a sender: '' without a token, NULL while nobody owns it.
ALTER TABLE $schema.senders ADD COLUMN owner text COLLATE "C";

-- Every tenant and meter that has sums, and the source that began it: '' for those from before they were counted.
CREATE TABLE $schema.series (
    tenant text COLLATE "C" NOT NULL,
    meter text COLLATE "C" NOT NULL,
    source text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, meter)
);
INSERT INTO $schema.series SELECT DISTINCT tenant, meter, '' FROM $schema.sums;

-- The number of series by source; of '' it is that of all.
CREATE TABLE $schema.series_counts (
    source text COLLATE "C" PRIMARY KEY,
    count bigint NOT NULL
);
INSERT INTO $schema.series_counts SELECT '', count(*) FROM $schema.series;
