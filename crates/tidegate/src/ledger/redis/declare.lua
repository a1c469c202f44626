local executor, asked = ARGV[2], tonumber(ARGV[3])
local declared_for, executors_max = tonumber(ARGV[4]), tonumber(ARGV[5])
expire()
local before = slots_of(executor)
if asked == 0 then
  redis.call('HDEL', slots, executor)
  redis.call('ZREM', known, executor)
  return done({'done'})
end
if not redis.call('ZSCORE', known, executor) then
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', known, '-inf', now, 'LIMIT', 0, EXPIRED_MAX)) do
    redis.call('HDEL', slots, gone)
    redis.call('ZREM', known, gone)
  end
  if redis.call('ZCARD', known) >= executors_max then return done({'full'}) end
end
redis.call('HSET', slots, executor, asked)
redis.call('ZADD', known, now + declared_for, executor)
keep(slots, known)
if asked > before then freed(executor) end
return done({'done'})
