local holder = ARGV[2]
expire()
if lease_of(holder) ~= ARGV[3] then return done(0) end
freed(remove_lease(holder))
return done(1)
