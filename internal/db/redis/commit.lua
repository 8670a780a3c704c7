#!lua flags=no-cluster
-- Commits one transaction, or changes nothing at all.
--
-- KEYS: the index, the count of commits, the keys that were read, the keys that
--       are written, each of these once.
-- ARGV: how many keys were read; for each of them '-' if it was absent, else '='
--       and its value; for each key that is written '-' to delete it, '=' and a
--       value to set a key that is in the index, '+' and a value for one that may
--       not be.
-- Returns 1, or 0 if a key that was read is no longer as it was. An error that is
-- raised, which Redis marks with the script's name, comes after the first write
-- and may have left part of the transaction behind; one that is returned has not.
local read = tonumber(ARGV[1])
for first = 1, read, 1000 do
  local last = math.min(first + 999, read)
  local found = redis.pcall('MGET', unpack(KEYS, first + 2, last + 2))
  if found.err then return found end
  for i = first, last do
    local value = found[i - first + 1]
    if (value and '=' .. value or '-') ~= ARGV[i + 1] then return 0 end
  end
end

local sets, adds, deletes = {}, {}, {}
for i = read + 1, #KEYS - 2 do
  local key, write = KEYS[i + 2], ARGV[i + 1]
  local what = string.sub(write, 1, 1)
  if what == '-' then
    deletes[#deletes + 1] = key
  else
    sets[#sets + 1] = key
    sets[#sets + 1] = string.sub(write, 2)
    if what == '+' then
      adds[#adds + 1] = '0'
      adds[#adds + 1] = key
    end
  end
end

-- Of what is written below, the index and the count alone could be of another
-- type than they must be: MSET and DEL take any. The count is the first write.
local kind = redis.pcall('TYPE', KEYS[1])
if kind.err then return kind end
if kind.ok ~= 'zset' and kind.ok ~= 'none' then
  return redis.error_reply('FOREIGN the key ' .. KEYS[1] .. ' is a ' .. kind.ok)
end
local count = redis.pcall('INCR', KEYS[2])
if type(count) == 'table' and count.err then return count end

if #sets > 0 then redis.call('MSET', unpack(sets)) end
if #adds > 0 then redis.call('ZADD', KEYS[1], unpack(adds)) end
if #deletes > 0 then
  redis.call('DEL', unpack(deletes))
  redis.call('ZREM', KEYS[1], unpack(deletes))
end
return 1
