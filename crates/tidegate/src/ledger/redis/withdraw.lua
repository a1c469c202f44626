local holder = ARGV[2]
expire()
local _, told = lease_of(holder)
if told == '0' then
  freed(remove_lease(holder))
  return done(1)
end
return done(leave(holder) and 1 or 0)
