import type { FastifyReply } from "fastify";

import { stringifyExactly } from "../wire/exactJson.js";

export function json(reply: FastifyReply, body: object): FastifyReply {
  // A buffer, because Fastify adds a charset to strings, and application/json has none.
  return reply.header("Content-Type", "application/json").send(Buffer.from(stringifyExactly(body)));
}
