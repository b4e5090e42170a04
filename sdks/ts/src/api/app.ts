/** The HTTP application: hooks, routes and error handling. */

import { METHODS } from "node:http";
import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";

import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
} from "fastify";

import { invalid, Problem } from "../problem.js";
import { addAskRoute } from "./ask.js";
import { tokenGuard } from "./auth.js";
import { addBatchRoute } from "./batch.js";
import { addBrainRoutes } from "./brains.js";
import { readBody } from "./decode.js";
import { addDocumentRoutes } from "./documents.js";
import { addEventRoutes } from "./events.js";
import { addIngestRoutes } from "./ingest.js";
import { isLoopback, originGuard } from "./origin.js";
import { onClientError, onError, rejectUnhandled, sendProblem } from "./respond.js";
import { addSearchRoute } from "./search.js";
import type { Services } from "./services.js";

/** An encoded or trailing slash: Fastify would decode or drop it, and match another route. */
const STRAY_SLASH = /^[^?]*(?:%2f|\/(?:\?|$))/i;

/** The maximum size of a request's line and headers, in bytes. */
const HEAD_LIMIT = 2 ** 16;

export function createApp(services: Services, log: FastifyBaseLogger): FastifyInstance {
  let local: boolean | undefined;
  const isLocal = () => (local ??= isLoopback(app.server.address() as AddressInfo));
  const { authToken, requestSeconds } = services;
  const requestMs = Math.ceil(requestSeconds * 1000);
  const problemWith = authToken === undefined ? originGuard(isLocal) : tokenGuard(authToken);
  const app = Fastify({
    loggerInstance: log,
    disableRequestLogging: true,
    // A brain id that is too long must be a validation error, not an unknown route.
    routerOptions: { maxParamLength: 2 ** 16 },
    // A hook rejects requests without a Host, because Node's own response has no body.
    http: {
      requireHostHeader: false,
      headersTimeout: requestMs,
      maxHeaderSize: HEAD_LIMIT,
      // Node compares the two when it creates the server, before Fastify sets its own.
      requestTimeout: requestMs,
      // Node looks at its connections at intervals only, of whole milliseconds.
      connectionsCheckingInterval: Math.min(Math.ceil(requestMs / 4), 10_000),
    },
    requestTimeout: requestMs,
    clientErrorHandler: onClientError,
    frameworkErrors: (error, { raw }, reply) => {
      // These errors bypass the hooks, so requests are guarded here too.
      void sendProblem(reply, problemWith(raw) ?? invalid(error.message));
    },
  });

  // Node's own response to an expectation that it does not know has no body.
  app.server.on("checkExpectation", (request, response) => {
    app.server.emit("request", request, response);
  });

  // Fastify must know every method to answer 405 rather than 404.
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }

  // The media type is ignored: handlers read the bytes.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_: FastifyRequest, payload: Readable) => readBody(payload));

  app.addHook("onRequest", ({ raw }, _reply, done) => {
    const fault = problemWith(raw);
    if (raw.httpVersion === "1.1" && raw.headers.host === undefined) {
      done(invalid("the Host header is missing"));
    } else if (fault !== undefined) {
      done(fault);
    } else if (STRAY_SLASH.test(raw.url ?? "")) {
      done(new Problem("not_found", "no route has an encoded or trailing slash"));
    } else {
      done();
    }
  });

  const methodsByUrl = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = methodsByUrl.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    methodsByUrl.set(url, methods);
  });

  app.setErrorHandler(onError);
  addBrainRoutes(app, services);
  addIngestRoutes(app, services);
  addSearchRoute(app, services);
  addAskRoute(app, services);
  addDocumentRoutes(app, services);
  addBatchRoute(app, services);
  addEventRoutes(app, services);
  rejectUnhandled(app, methodsByUrl);
  return app;
}
