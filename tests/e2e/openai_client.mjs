// OpenAI's Node package, led by test_gateway_node.py: each line in is a call, each line out what the program got of it.
import { createInterface } from "node:readline";
import OpenAI from "openai";

async function items_of(stream, most) {
  const items = [];
  for await (const item of stream) {
    items.push(item);
    if (items.length === most) break;
  }
  return items;
}

async function outcome_of({ method, body, options, stop_after }) {
  const attempts = [];
  const noting_fetch = async (...request) => {
    const response = await fetch(...request);
    attempts.push({ ms: performance.now(), status: response.status, headers: Object.fromEntries(response.headers) });
    return response;
  };
  const client = new OpenAI({ fetch: noting_fetch, ...options });
  const names = method.split(".");
  const name = names.pop();
  const resource = names.reduce((owner, part) => owner[part], client);
  try {
    const answer = await resource[name](body);
    return { attempts, answer: Symbol.asyncIterator in answer ? await items_of(answer, stop_after) : answer };
  } catch (error) {
    if (!(error instanceof OpenAI.OpenAIError)) throw error;
    const { status, code, type, param, message } = error;
    return { attempts, error: { class: error.constructor.name, status, code, type, param, message } };
  }
}

for await (const line of createInterface(process.stdin)) console.log(JSON.stringify(await outcome_of(JSON.parse(line))));
