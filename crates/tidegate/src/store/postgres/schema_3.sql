-- The client whose token delivered the records of a sum: '' without a token, and for those from before it was counted.
ALTER TABLE $schema.sums ADD COLUMN client text COLLATE "C" NOT NULL DEFAULT '';
