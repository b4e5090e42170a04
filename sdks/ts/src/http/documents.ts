/** The routes of the contract's profile `documents`. */

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

import { type Edit, operations } from "../brain/edits.js";
import { missing } from "../brain/draft.js";
import { itemAt, list } from "../brain/listing.js";
import { Problem } from "../problem.js";
import { bytesOf, parseBody, refuseMuch } from "./body.js";
import { json } from "./json.js";
import { Parameters } from "./parameters.js";
import { BRAIN, type OfBrain, type Services } from "./services.js";
import { BATCH_OPS, RENAME } from "./schemas.js";

/** Bytes of the body of one write. */
const WRITE_LIMIT = 2 * 2 ** 20;

const OPS_LIMIT = 1024;

const DOCUMENTS = `${BRAIN}/documents`;

export function addDocumentRoutes(
  app: FastifyInstance,
  { store, pending }: Pick<Services, "store" | "pending">,
): void {
  const brainOf = ({ params }: FastifyRequest<OfBrain>) => store.get(params.brainId);

  /** Errors too are of the moment. */
  const fresh = {
    onRequest: (_: FastifyRequest, reply: FastifyReply, done: () => void): void => {
      void reply.header("Cache-Control", "no-store");
      done();
    },
  };

  app.get<OfBrain>(`${DOCUMENTS}/read`, fresh, async (request, reply) => {
    const { documents } = await brainOf(request);
    const path = pathIn(request);
    const content = documents.read(path);
    if (content === undefined) throw missing(path);
    return reply
      .header("Content-Type", "application/octet-stream")
      .header("X-Content-Type-Options", "nosniff")
      .send(content);
  });

  app.head<OfBrain>(DOCUMENTS, fresh, async (request, reply) => {
    const { documents } = await brainOf(request);
    const path = pathIn(request);
    if (documents.file(path) === undefined) throw missing(path);
    return reply.send();
  });

  app.get<OfBrain>(`${DOCUMENTS}/stat`, fresh, async (request, reply) => {
    const { documents } = await brainOf(request);
    const path = pathIn(request);
    const item = itemAt(documents, path);
    if (item === undefined) throw missing(path);
    return json(reply, item);
  });

  app.get<OfBrain>(
    DOCUMENTS,
    // Fastify would make a HEAD route of it, and HEAD is another's.
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

  app.put<OfBrain>(DOCUMENTS, async (request, reply) => {
    const brain = await brainOf(request);
    const path = pathIn(request);
    const content = contentIn(request);
    const write: Edit = (draft) => {
      draft.write(path, content);
    };
    await brain.edit(write, pending.signalOf(reply));
    return reply.code(204).send();
  });

  app.post<OfBrain>(`${DOCUMENTS}/append`, async (request, reply) => {
    const brain = await brainOf(request);
    const path = pathIn(request);
    const content = contentIn(request);
    const append: Edit = (draft) => {
      draft.append(path, content);
    };
    await brain.edit(append, pending.signalOf(reply));
    return reply.code(204).send();
  });

  app.delete<OfBrain>(DOCUMENTS, async (request, reply) => {
    const brain = await brainOf(request);
    const path = pathIn(request);
    const remove: Edit = (draft) => {
      draft.delete(path);
    };
    await brain.edit(remove, pending.signalOf(reply));
    return reply.code(204).send();
  });

  app.post<OfBrain>(`${DOCUMENTS}/rename`, async (request, reply) => {
    const brain = await brainOf(request);
    const { from, to } = parseBody(RENAME, request.body);
    const rename: Edit = (draft) => {
      draft.rename(from, to);
    };
    await brain.edit(rename, pending.signalOf(reply));
    return reply.code(204).send();
  });

  app.post<OfBrain>(`${DOCUMENTS}/batch-ops`, async (request, reply) => {
    const brain = await brainOf(request);
    const { ops, reason } = parseBody(BATCH_OPS, request.body);
    if (ops.length > OPS_LIMIT) {
      throw new Problem("payload_too_large", `ops: more than ${OPS_LIMIT}`);
    }
    refuseMuch(ops.flatMap((op) => ("content" in op ? [op.content] : [])));
    await brain.edit(operations(ops), pending.signalOf(reply), reason);
    return json(reply, { committed: ops.length });
  });
}

function parametersOf({ raw }: FastifyRequest<OfBrain>): Parameters {
  return new Parameters(raw.url ?? "");
}

function pathIn(request: FastifyRequest<OfBrain>): string {
  return parametersOf(request).path("path");
}

function contentIn({ body }: FastifyRequest<OfBrain>): Buffer {
  const content = bytesOf(body);
  if (content.length > WRITE_LIMIT) {
    throw new Problem("payload_too_large", `more than ${WRITE_LIMIT} bytes of document`);
  }
  return content;
}
