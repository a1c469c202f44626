-- What every script begins with. The rules are those of SlotLedger in tidegate-core, and one conformance suite
-- runs on both. Keys are fixed in number; what belongs to an executor is a range of members that begin with its
-- name, because keys that come and go with executors could not be declared, and would have to be found to be
-- removed.
--
--   slots    hash   executor -> slots              known    zset   executor by when it is forgotten
--   lease    hash   holder -> "fence told executor"
--   leases   zset   holder by when its lease ends  held     zset   executor \1 holder
--   place    hash   holder -> turn \1 executors    places   zset   holder by when its place ends
--   line     zset   executor \1 turn \1 holder, where turn is the priority and then the arrival, as 17 digits
--   fence, arrival  the last numbers given
local slots, known, lease, leases, held = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local place, places, line, fence, arrival = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local channel = ARGV[1]

-- At most so much of what has run out is cleared away in one call: no call may take long.
local EXPIRED_MAX = 1000
-- Longer than the longest lease: when nobody has come for so long, nothing of this is needed.
local KEPT_MS = 2 * 86400000

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local changed = false

local function digits(number) return string.format('%.0f', number) end

local function keep(...)
  for _, key in ipairs({...}) do redis.call('PEXPIRE', key, KEPT_MS) end
end

-- The clock is the floor: a server that has forgotten everything still counts on from above what it gave before.
local function floor(key)
  if redis.call('EXISTS', key) == 0 then
    redis.call('SET', key, digits(tonumber(time[1]) * 1000000 + tonumber(time[2])))
  end
end

local function count(key)
  floor(key)
  return redis.call('INCR', key)
end

local function first_of(executor) return '[' .. executor .. '\1' end
local function past_all_of(executor) return '(' .. executor .. '\2' end

local function slots_of(executor)
  local declared_until = redis.call('ZSCORE', known, executor)
  if not declared_until or tonumber(declared_until) <= now then return 0 end
  return tonumber(redis.call('HGET', slots, executor) or 0)
end

local function held_of(executor)
  return redis.call('ZLEXCOUNT', held, first_of(executor), past_all_of(executor))
end

local function has_free(executor) return held_of(executor) < slots_of(executor) end

-- The fence, whether the holder was told, and the executor.
local function lease_of(holder)
  local entry = redis.call('HGET', lease, holder)
  if not entry then return nil end
  return string.match(entry, '^(%d+) (%d) (.*)$')
end

local function write_lease(holder, number, told, executor, ends)
  redis.call('HSET', lease, holder, number .. ' ' .. told .. ' ' .. executor)
  redis.call('ZADD', leases, ends, holder)
  redis.call('ZADD', held, 0, executor .. '\1' .. holder)
  keep(lease, leases, held, fence)
end

local function grant(holder, executor, ends, told)
  local number = digits(count(fence))
  write_lease(holder, number, told, executor, ends)
  return number
end

local function remove_lease(holder)
  local _, _, executor = lease_of(holder)
  redis.call('HDEL', lease, holder)
  redis.call('ZREM', leases, holder)
  if executor then redis.call('ZREM', held, executor .. '\1' .. holder) end
  return executor
end

-- The turn, and the executors.
local function place_of(holder)
  local entry = redis.call('HGET', place, holder)
  if not entry then return nil, {} end
  local executors = {}
  for executor in string.gmatch(string.sub(entry, 18), '\1([^\1]+)') do
    executors[#executors + 1] = executor
  end
  return string.sub(entry, 1, 17), executors
end

local function leave(holder)
  local turn, executors = place_of(holder)
  redis.call('HDEL', place, holder)
  redis.call('ZREM', places, holder)
  for _, executor in ipairs(executors) do
    redis.call('ZREM', line, executor .. '\1' .. turn .. '\1' .. holder)
  end
  return turn ~= nil
end

-- Slots of an executor came free: they are those of the first who wait.
local function freed(executor)
  changed = true
  while has_free(executor) do
    local range = {first_of(executor), past_all_of(executor)}
    local first = redis.call('ZRANGEBYLEX', line, range[1], range[2], 'LIMIT', 0, 1)[1]
    if not first then return end
    local holder = string.match(first, '\1[^\1]*\1(.*)$')
    local ends = tonumber(redis.call('ZSCORE', places, holder) or 0)
    leave(holder)
    redis.call('ZREM', line, first)
    if ends > now then grant(holder, executor, ends, '0') end
  end
end

local function expire()
  -- Places first: a slot is nobody's who has stopped asking for it.
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', places, '-inf', now, 'LIMIT', 0, EXPIRED_MAX)) do
    leave(holder)
  end
  local executors, seen = {}, {}
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now, 'LIMIT', 0, EXPIRED_MAX)) do
    local executor = remove_lease(holder)
    if executor and not seen[executor] then
      seen[executor] = true
      executors[#executors + 1] = executor
    end
  end
  table.sort(executors)
  for _, executor in ipairs(executors) do freed(executor) end
end

-- Prolongs a holder's lease, if it has one and, where a number is given, that one. It never becomes shorter.
local function extend(holder, number, ttl)
  local own, _, executor = lease_of(holder)
  if not own or (number and number ~= own) then return nil end
  local before = tonumber(redis.call('ZSCORE', leases, holder) or 0)
  -- So much has run out that it was not its turn yet to be cleared away.
  if before <= now then
    freed(remove_lease(holder))
    return nil
  end
  write_lease(holder, own, '1', executor, math.max(before, now + ttl))
  return own, executor
end

local function done(answer)
  if changed then redis.call('PUBLISH', channel, '') end
  return answer
end

