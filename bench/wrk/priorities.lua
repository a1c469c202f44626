-- Requests of mixed priority, in the proportions of a busy fleet: mostly data and telemetry.

local shares = { high = 2, normal = 5, low = 3 }
local requests = {}
local turn = 0

function init()
  for priority, share in pairs(shares) do
    local request = wrk.format("GET", nil, { ["tidegate-priority"] = priority })
    for _ = 1, share do
      table.insert(requests, request)
    end
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "duration_us": %d, "socket_errors": %d, "status_errors": %d}\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.timeout, errors.status))
end
