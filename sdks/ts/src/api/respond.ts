/** Responses in JSON, and failures as `application/problem+json`. */

import type { Socket } from "node:net";

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

import { invalid, Problem } from "../problem.js";
import { stringifyExactly } from "../wire/exactJson.js";

export function json(reply: FastifyReply, body: object): FastifyReply {
  // A buffer, because Fastify adds a charset to strings, and application/json has none.
  return reply.header("Content-Type", "application/json").send(Buffer.from(stringifyExactly(body)));
}

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.code === "unauthorized") void reply.header("WWW-Authenticate", "Bearer");
  return reply
    .code(problem.status)
    .header("Content-Type", "application/problem+json")
    .send(Buffer.from(JSON.stringify(problem.body)));
}

/** Respond to an error that a handler threw. */
export function onError(
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  return sendProblem(reply, problemOf(error, request));
}

/** Respond to malformed HTTP, which never becomes a request, on the socket itself. */
export function onClientError(error: Error, socket: Socket): void {
  const isTimeout = "code" in error && error.code === "ERR_HTTP_REQUEST_TIMEOUT";
  if (isTimeout || !socket.writable) {
    socket.destroy();
    return;
  }
  const body = JSON.stringify(invalid("the request is not valid HTTP").body);
  socket.end(
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n" +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** Answer 404 for unknown URLs and 405 for unknown methods; call it after the last route. */
export function rejectUnhandled(
  app: FastifyInstance,
  methodsByUrl: ReadonlyMap<string, Set<string>>,
): void {
  app.setNotFoundHandler((request, reply) => {
    const [url = ""] = request.url.split("?");
    return sendProblem(reply, new Problem("not_found", `${request.method} ${url}: no such route`));
  });
  for (const [url, methods] of methodsByUrl) {
    const allow = [...methods].sort().join(", ");
    app.route({
      method: app.supportedMethods.filter((method) => !methods.has(method)),
      url,
      handler: (request, reply) => {
        const problem = new Problem(
          "method_not_allowed",
          `${request.method} is not allowed here, only ${allow}`,
        );
        return sendProblem(reply.header("Allow", allow), problem);
      },
    });
  }
}

/** The Problem to report for an error, which is logged if it is a failure of the daemon or an upstream. */
export function problemOf(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Problem) {
    if (error.status >= 500)
      request.log.warn({ url: request.url, detail: error.detail }, error.code);
    return error;
  }
  request.log.error({ url: request.url, err: error }, "request failed");
  const name = error instanceof Error ? error.name : "error";
  return new Problem("internal_error", `${name}; see the daemon's log`);
}
