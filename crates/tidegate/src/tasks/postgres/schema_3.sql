-- Queued tasks belong to nobody (owner ''), until a manager claims them for its free slots.
ALTER TABLE $schema.tasks
    -- Of the specification: by what a queued task is chosen. NULL where an earlier version wrote the row.
    ADD COLUMN priority smallint,
    ADD COLUMN runtime text COLLATE "C",
    -- Earliest start of a queued task, until that has come.
    ADD COLUMN not_before_ms bigint,
    -- Executor that has the last attempt, or may have it.
    ADD COLUMN executor text COLLATE "C",
    -- A claim for that executor is newer than the text of the state, which is one attempt behind.
    ADD COLUMN claimed boolean NOT NULL DEFAULT false;

-- By patterns, because a damaged text must not keep all others from being used.
UPDATE $schema.tasks AS task SET
    priority = array_position(ARRAY['critical', 'high', 'normal', 'low'],
        substring(spec from '"priority":"([a-z]+)","timeout_ms":[0-9]+,"retries":[0-9]+\}$')) - 1,
    runtime = substring(spec from '^\{"runtime":"([^"\\]*)"'),
    not_before_ms = substring(state from '"not_before_ms":([0-9]+)')::bigint,
    executor = substring(state from '"(?:assignment|placed)":\{"executor":"([^"]*)"')
FROM $schema.specs AS specs WHERE specs.id = task.id AND status < 3;

UPDATE $schema.tasks SET owner = '' WHERE status = 0 AND executor IS NULL AND priority IS NOT NULL;

CREATE INDEX tasks_queue ON $schema.tasks (priority, seq, runtime)
    WHERE status = 0 AND owner = '' AND executor IS NULL AND not_before_ms IS NULL;
CREATE INDEX tasks_due ON $schema.tasks (not_before_ms)
    WHERE status = 0 AND owner = '' AND executor IS NULL AND not_before_ms IS NOT NULL;
-- What a manager that shuts down has handed over: life 0.
CREATE INDEX tasks_handed_over ON $schema.tasks (executor) WHERE life = 0 AND status < 3;
