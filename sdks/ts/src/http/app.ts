/** The HTTP surface. */

import { METHODS } from "node:http";
import type { Readable } from "node:stream";

import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyRequest,
} from "fastify";

import { invalid, Problem } from "../problem.js";
import { guard } from "./auth.js";
import { readBody } from "./body.js";
import { addDocumentRoutes } from "./documents.js";
import { onClientError, onError, refuseTheRest, sendProblem } from "./errors.js";
import { addEventRoutes } from "./events.js";
import { addRoutes } from "./routes.js";
import type { Services } from "./services.js";

/** Decoded, or left out, the slash would name another route than the one that was sent. */
const SLASH_TOO_MANY = /^[^?]*(?:%2f|\/(?:\?|$))/i;

export function createApp(services: Services, log: FastifyBaseLogger): FastifyInstance {
  const faultOf = guard(services.authToken);
  const app = Fastify({
    loggerInstance: log,
    disableRequestLogging: true,
    // A brain's id that is too long is to be refused as such, and not to be an unknown route.
    routerOptions: { maxParamLength: 2 ** 16 },
    // Requests without a Host come to a hook, for Node answers them without a body.
    http: { requireHostHeader: false },
    clientErrorHandler: onClientError,
    frameworkErrors: (error, { raw }, reply) => {
      // No hook sees them.
      void sendProblem(reply, faultOf(raw) ?? invalid(error.message));
    },
  });

  // So that each of them can be refused with 405, and not as an unknown route.
  for (const method of METHODS) {
    if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);
  }

  // Whatever the media type says: the handlers read the bytes.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", (_: FastifyRequest, payload: Readable) => readBody(payload));

  app.addHook("onRequest", ({ raw }, _reply, done) => {
    const fault = faultOf(raw);
    if (fault !== undefined) {
      done(fault);
    } else if (raw.httpVersion === "1.1" && raw.headers.host === undefined) {
      done(invalid("no Host"));
    } else if (SLASH_TOO_MANY.test(raw.url ?? "")) {
      done(new Problem("not_found", "an encoded slash, or one at the end, names nothing"));
    } else {
      done();
    }
  });

  const served = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = served.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    served.set(url, methods);
  });

  app.setErrorHandler(onError);
  addRoutes(app, services);
  addDocumentRoutes(app, services);
  addEventRoutes(app, services);
  refuseTheRest(app, served);
  return app;
}
