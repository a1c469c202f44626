floor(fence)
return redis.call('GET', fence)
