-- wrk: one question after the other to an OpenAI-compatible server, each its own, as wire_load's chat asks them.
local thread_count = 0
function setup(thread) thread:set("first", thread_count * 100000) thread_count = thread_count + 1 end
local asked = 0
function request()
  asked = asked + 1
  local number = first + asked
  local body = string.format('{"model":"local","stream":true,"temperature":0,"ignore_eos":true,"max_tokens":%s,"messages":[' ..
    '{"role":"user","content":"%d: what is remarkable about the number %d?"}]}', os.getenv("MAX_TOKENS"), number, number)
  return wrk.format("POST", "/v1/chat/completions", {["Content-Type"] = "application/json"}, body)
end
