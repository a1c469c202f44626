expire()
local own = extend(ARGV[2], ARGV[3], tonumber(ARGV[4]))
return done(own and 1 or 0)
