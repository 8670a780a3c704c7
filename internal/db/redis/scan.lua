#!lua flags=no-writes,no-cluster
-- Reads one page of the index and the values of its keys, at one moment.
--
-- KEYS: the index, the count of commits.
-- ARGV: the first and the last key as ZRANGE … BYLEX takes them; how many keys.
-- Returns the count of commits, how many keys the index has in this page, the
-- last of them, and then each key that has a value, followed by the value.
local members = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYLEX', 'LIMIT', '0', ARGV[3])
local answer = { redis.call('GET', KEYS[2]), #members, members[#members] or '' }
for first = 1, #members, 1000 do
  local last = math.min(first + 999, #members)
  local values = redis.call('MGET', unpack(members, first, last))
  for i = first, last do
    local value = values[i - first + 1]
    if value then
      answer[#answer + 1] = members[i]
      answer[#answer + 1] = value
    end
  end
end
return answer
