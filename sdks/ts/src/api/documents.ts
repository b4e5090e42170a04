/** The routes of the contract's profile `documents`. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

import { documentNotFound } from "../brain/draft.js";
import { type Operation, operationEdit } from "../brain/operation.js";
import { itemAt, list } from "../files/list.js";
import { Problem } from "../problem.js";
import { RENAME } from "./bodies.js";
import { bytesOf, parseBody } from "./decode.js";
import { Parameters } from "./parameters.js";
import { json } from "./respond.js";
import { type BrainRoute, DOCUMENTS, type Services } from "./services.js";

/** Bytes in the body of one write. */
const WRITE_LIMIT = 2 * 2 ** 20;

export function addDocumentRoutes(app: FastifyInstance, { store, pending }: Services): void {
  const brainOf = ({ params }: FastifyRequest<BrainRoute>) => store.get(params.brainId);

  /** Responses must not be cached, errors included. */
  const fresh = {
    onRequest: (_: FastifyRequest, reply: FastifyReply, done: () => void): void => {
      void reply.header("Cache-Control", "no-store");
      done();
    },
  };

  app.get<BrainRoute>(`${DOCUMENTS}/read`, fresh, async (request, reply) => {
    const { documents } = await brainOf(request);
    const path = pathIn(request);
    const content = documents.read(path);
    if (content === undefined) throw documentNotFound(path);
    return reply
      .header("Content-Type", "application/octet-stream")
      .header("X-Content-Type-Options", "nosniff")
      .send(content);
  });

  app.head<BrainRoute>(DOCUMENTS, fresh, async (request, reply) => {
    const { documents } = await brainOf(request);
    const path = pathIn(request);
    if (documents.file(path) === undefined) throw documentNotFound(path);
    return reply.send();
  });

  app.get<BrainRoute>(`${DOCUMENTS}/stat`, fresh, async (request, reply) => {
    const { documents } = await brainOf(request);
    const path = pathIn(request);
    const item = itemAt(documents, path);
    if (item === undefined) throw documentNotFound(path);
    return json(reply, item);
  });

  app.get<BrainRoute>(
    DOCUMENTS,
    // HEAD has a route of its own above.
    { ...fresh, exposeHeadRoute: false },
    async (request, reply) => {
      const { documents } = await brainOf(request);
      const parameters = parametersOf(request);
      const items = list(documents, {
        dir: parameters.folder("dir"),
        recursive: parameters.flag("recursive"),
        hidden: parameters.flag("include_generated"),
        glob: parameters.text("glob"),
      });
      return json(reply, { items });
    },
  );

  const changing =
    (operationOf: (request: FastifyRequest<BrainRoute>) => Operation) =>
    async (request: FastifyRequest<BrainRoute>, reply: FastifyReply): Promise<FastifyReply> => {
      const brain = await brainOf(request);
      const operation = operationOf(request);
      await brain.change(operationEdit(operation), pending.signalOf(reply));
      return reply.code(204).send();
    };

  app.put<BrainRoute>(
    DOCUMENTS,
    changing((request) => ({ type: "write", path: pathIn(request), content: contentIn(request) })),
  );

  app.post<BrainRoute>(
    `${DOCUMENTS}/append`,
    changing((request) => ({ type: "append", path: pathIn(request), content: contentIn(request) })),
  );

  app.delete<BrainRoute>(
    DOCUMENTS,
    changing((request) => ({ type: "delete", path: pathIn(request) })),
  );

  app.post<BrainRoute>(
    `${DOCUMENTS}/rename`,
    changing(({ body }) => {
      const { from, to } = parseBody(RENAME, body);
      return { type: "rename", path: from, to };
    }),
  );
}

function parametersOf({ raw }: FastifyRequest<BrainRoute>): Parameters {
  return new Parameters(raw.url ?? "");
}

function pathIn(request: FastifyRequest<BrainRoute>): string {
  return parametersOf(request).path("path");
}

function contentIn({ body }: FastifyRequest<BrainRoute>): Buffer {
  const content = bytesOf(body);
  if (content.length > WRITE_LIMIT) {
    throw new Problem("payload_too_large", `the document has more than ${WRITE_LIMIT} bytes`);
  }
  return content;
}
