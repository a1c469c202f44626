local holder, priority, ttl = ARGV[2], ARGV[3], tonumber(ARGV[4])
local waiters_max, standing_max = tonumber(ARGV[5]), tonumber(ARGV[6])
local executors = {}
for at = 7, #ARGV do executors[#executors + 1] = ARGV[at] end
expire()

local own, at = extend(holder, nil, ttl)
if own then return done({'granted', own, at}) end

for _, executor in ipairs(executors) do
  if has_free(executor) then
    leave(holder)
    return done({'granted', grant(holder, executor, now + ttl, '1'), executor})
  end
end

-- It waits: where it stood, if it did.
local stood, before = place_of(holder)
local ends = now + ttl
local number
if stood then
  ends = math.max(ends, tonumber(redis.call('ZSCORE', places, holder) or 0))
  number = string.sub(stood, 2)
else
  if redis.call('ZCARD', places) >= waiters_max then return done({'full'}) end
end
local wanted = table.concat(executors, '\1')
if not stood or priority ~= string.sub(stood, 1, 1) or wanted ~= table.concat(before, '\1') then
  if redis.call('ZCARD', line) - #before + #executors > standing_max then return done({'full'}) end
  leave(holder)
  number = number or string.format('%016.0f', count(arrival))
  stood = priority .. number
  for _, executor in ipairs(executors) do
    redis.call('ZADD', line, 0, executor .. '\1' .. stood .. '\1' .. holder)
  end
  redis.call('HSET', place, holder, stood .. '\1' .. wanted)
end
redis.call('ZADD', places, ends, holder)
keep(place, places, line, arrival)

local shortest, length
for _, executor in ipairs(executors) do
  local waiting = redis.call('ZLEXCOUNT', line, first_of(executor), past_all_of(executor))
  if not length or waiting < length then shortest, length = executor, waiting end
end
local own_turn = '(' .. shortest .. '\1' .. stood .. '\1'
return done({'waiting', digits(redis.call('ZLEXCOUNT', line, first_of(shortest), own_turn))})
