local executor, asked_after = ARGV[2], tonumber(ARGV[3])
local running = {}
for at = 4, #ARGV do running[ARGV[at]] = true end
expire()
local ended = 0
for _, member in ipairs(redis.call('ZRANGEBYLEX', held, first_of(executor), past_all_of(executor))) do
  local holder = string.sub(member, #executor + 2)
  local number = lease_of(holder)
  if not number then
    -- Half of it is gone: a server that is short of memory may be told to drop keys as it likes.
    redis.call('ZREM', held, member)
    changed = true
  elseif not running[holder] and tonumber(number) <= asked_after then
    remove_lease(holder)
    ended = ended + 1
  end
end
if ended > 0 or changed then freed(executor) end
return done(ended)
