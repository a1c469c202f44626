-- Submits distinct tasks: `-- NAME` distinguishes the tasks of several runs. Code that is not a mock script
-- takes the time of `--mock-ms`.

local threads = 0
local turn = 0
local headers = { ["content-type"] = "application/json" }

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

function init(args)
  body = string.format('{"runtime":"bench","code":"%s-%d-%%d"}', args[1] or "task", number)
end

function request()
  turn = turn + 1
  return wrk.format("POST", nil, headers, string.format(body, turn))
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "duration_us": %d, "socket_errors": %d, "status_errors": %d, "p50_us": %d, "p99_us": %d}\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.timeout,
    errors.status, latency:percentile(50), latency:percentile(99)))
end
