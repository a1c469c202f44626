-- The client that submitted a task: NULL for an operator, and for tasks of before.
ALTER TABLE $schema.tasks ADD COLUMN client text COLLATE "C";

-- A page of a client's tasks costs what the page has, however many tasks others have.
CREATE INDEX tasks_client ON $schema.tasks (client, seq) WHERE client IS NOT NULL;
