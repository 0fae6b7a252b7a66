-- wrk: one Generate after the other, through a gRPC-JSON transcoder. TOKENS: of each answer.
wrk.method = "POST"
wrk.path = "/inference.LLM/Generate"
wrk.headers["Content-Type"] = "application/json"
wrk.body = string.format('{"model":"local","max_tokens":%s}', os.getenv("TOKENS"))
