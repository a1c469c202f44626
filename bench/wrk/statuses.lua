-- Counts responses by status. A callback per response slows wrk down, so this is for warm-up and for
-- checks, never for a measured round.

local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init()
  statuses = ""
  counts = {}
end

function response(status)
  counts[status] = (counts[status] or 0) + 1
  -- Threads hand back strings, not tables: keep the printable form current when a status is new.
  if counts[status] == 1 then
    statuses = statuses .. " " .. status
  end
end

function done(summary)
  local seen = {}
  for _, thread in ipairs(threads) do
    for status in string.gmatch(thread:get("statuses"), "%d+") do
      table.insert(seen, status)
    end
  end
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "socket_errors": %d, "statuses": [%s]}\n', summary.requests,
    errors.connect + errors.read + errors.write + errors.timeout, table.concat(seen, ", ")))
end
