-- Sends one chat completion repeatedly: `-- words 16` for a prompt of 16 words, `-- bytes 1048576` for a body
-- of about that size. The request is built once, so that its length does not affect the CPU time of wrk.

local words = { "tide", "gate", "river", "of", "load", "opens", "and", "closes", "by", "itself", "when", "water" }
local body = '{"model":"bench","max_tokens":64,"messages":[{"role":"user","content":"%s"}]}'

local function prompt(unit, amount)
  if unit == "bytes" then
    return string.rep("x", amount - #body)
  end
  local spoken = {}
  for n = 1, amount do
    spoken[n] = words[n % #words + 1]
  end
  return table.concat(spoken, " ")
end

function init(args)
  local text = string.format(body, prompt(args[1], tonumber(args[2])))
  prepared = wrk.format("POST", nil, { ["content-type"] = "application/json" }, text)
end

function request()
  return prepared
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "duration_us": %d, "socket_errors": %d, "status_errors": %d, "p50_us": %d, "p99_us": %d}\n',
    summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.timeout,
    errors.status, latency:percentile(50), latency:percentile(99)))
end
