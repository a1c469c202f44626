expire()
return done(held_of(ARGV[2]))
