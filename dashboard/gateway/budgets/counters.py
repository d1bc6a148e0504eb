"""Counters in Valkey, each step one atomic script.

`u` is used, `r` reserved by what is still being answered. Counters belong to an epoch: it is gone
after Valkey lost its memory, and then they are worked out anew.
"""

from dataclasses import dataclass

EPOCH = "tandem:budget:epoch"
OPENING = "tandem:budget:opening"
PREFIX = "tandem:budget"


@dataclass(frozen=True)
class Line:
    """What one request adds to one counter."""

    counter: str
    used: int
    reserved: int
    most: int = 0
    warn_at: int = 0
    ttl: int = 3600


RESERVE = """
local epoch = ARGV[1]
if redis.call('GET', KEYS[1]) ~= epoch then return {'lost', 0, 0} end
local warned = 0
local first = 0
for i = 2, #ARGV, 6 do
  local got = redis.call('HMGET', 'tandem:budget:' .. epoch .. ':' .. ARGV[i], 'u', 'r')
  local u, r = tonumber(got[1] or '0'), tonumber(got[2] or '0')
  if u + r >= tonumber(ARGV[i + 3]) then
    return {'over', (i - 2) / 6, u >= tonumber(ARGV[i + 3]) and 1 or 0}
  end
end
for i = 2, #ARGV, 6 do
  local key = 'tandem:budget:' .. epoch .. ':' .. ARGV[i]
  local u = redis.call('HINCRBY', key, 'u', ARGV[i + 1])
  redis.call('HINCRBY', key, 'r', ARGV[i + 2])
  redis.call('EXPIRE', key, ARGV[i + 5])
  if u >= tonumber(ARGV[i + 4]) then
    if warned == 0 then warned = (i - 2) / 6 + 1 end
    if redis.call('HSETNX', key, 'w', 1) == 1 then first = (i - 2) / 6 + 1; warned = first end
  end
end
return {'ok', warned, first}
"""
"""Refuses, or reserves. Tells which limit warns, counted from 1, and whether for the first time."""

ADD = """
local epoch = ARGV[1]
if redis.call('GET', KEYS[1]) ~= epoch and redis.call('GET', KEYS[2]) ~= epoch then return 0 end
local mark = 'tandem:budget:' .. epoch .. ':' .. ARGV[2]
if ARGV[3] == 'settle' then
  if not redis.call('SET', mark .. ':s', 1, 'NX', 'EX', 300) then return 1 end
else
  if redis.call('SADD', 'tandem:budget:' .. epoch .. ':counted', ARGV[2]) == 0 then return 1 end
end
for i = 4, #ARGV, 4 do
  local key = 'tandem:budget:' .. epoch .. ':' .. ARGV[i]
  redis.call('HINCRBY', key, 'u', ARGV[i + 1])
  redis.call('HINCRBY', key, 'r', ARGV[i + 2])
  redis.call('EXPIRE', key, ARGV[i + 3])
end
return 1
"""
"""Settles a request, or adds one that Postgres did not tell of; each once. 0: another epoch."""

PUBLISH = """
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'EX', 10)
local counted = 'tandem:budget:' .. ARGV[1] .. ':counted'
local ids = cjson.decode(ARGV[2])
for i = 1, #ids do redis.call('SADD', counted, ids[i]) end
redis.call('SADD', counted, '')
redis.call('EXPIRE', counted, 2764800)
local lines = cjson.decode(ARGV[3])
for i = 1, #lines do
  local key = 'tandem:budget:' .. ARGV[1] .. ':' .. lines[i][1]
  redis.call('HSET', key, 'u', string.format('%.0f', lines[i][2]), 'r', 0)
  redis.call('EXPIRE', key, lines[i][3])
end
return 1
"""
"""What Postgres tells, as counters that open soon; unless somebody else was faster."""

OPEN = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('DEL', KEYS[2])
return 1
"""
