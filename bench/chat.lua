-- wrk: one chat after the other, streamed unless STREAM is "false". TOKENS: of each answer.
wrk.method = "POST"
wrk.path = "/v1/chat/completions"
wrk.headers["Content-Type"] = "application/json"
wrk.body = string.format('{"model":"local","stream":%s,"max_tokens":%s,"messages":[{"role":"user","content":"go"}]}',
  os.getenv("STREAM") or "true", os.getenv("TOKENS"))
