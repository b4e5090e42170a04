import type { FastifyReply } from "fastify";

export function json(reply: FastifyReply, body: object): FastifyReply {
  // To a string, Fastify would add a charset, which JSON has none of.
  return reply.header("Content-Type", "application/json").send(Buffer.from(JSON.stringify(body)));
}
