/** Schemas of the contract's request bodies. */

import { z } from "zod";

import { METADATA } from "../brain/sidecar.js";
import { pathFault } from "../files/path.js";
import { isDateOrDateTime } from "../moment.js";
import { decodeBase64 } from "../wire/base64.js";

const BLANK = /^\p{White_Space}*$/u;

/** Bytes in each annotation of a batch: reason, message, author and email. */
const ANNOTATION_BYTES = 4096;

/** A key that may be missing or null; both mean undefined. */
function optional<T>(schema: z.ZodType<T>) {
  return schema.nullish().transform((value) => value ?? undefined);
}

/** A key that may be missing or null; both mean `fallback`. */
function withDefault<T>(schema: z.ZodType<T>, fallback: T) {
  return schema.nullish().transform((value) => value ?? fallback);
}

const notBlank = z.string().refine((text) => !BLANK.test(text), "must not be blank");

const path = z.string().check((context) => {
  const fault = pathFault(context.value);
  if (fault !== undefined) {
    context.issues.push({ code: "custom", message: fault, input: context.value });
  }
});

const base64 = z.string().transform((text, context) => {
  const content = decodeBase64(text);
  if (content === undefined) context.addIssue("is not canonical base64");
  return content ?? Buffer.alloc(0);
});

export const CREATE_BRAIN = z.object({
  brainId: z.string(),
  description: optional(z.string()),
});

export const INGEST_FILE = z
  .object({
    path,
    contentType: z.string(),
    contentBase64: base64,
    title: optional(z.string()),
    tags: optional(z.array(z.string())),
    metadata: optional(METADATA),
  })
  .transform(({ contentBase64: content, ...rest }) => ({ ...rest, content }));

export const INGEST_BATCH = z.object({ documents: z.array(INGEST_FILE).min(1).max(1024) });

export const RENAME = z.object({ from: path, to: path });

const op = z.discriminatedUnion("type", [
  z
    .object({ type: z.enum(["write", "append"]), path, content_base64: base64 })
    .transform(({ content_base64: content, ...rest }) => ({ ...rest, content })),
  z.object({ type: z.literal("delete"), path }),
  z.object({ type: z.literal("rename"), path, to: path }),
]);

const annotation = z
  .string()
  .refine(
    (text) => Buffer.byteLength(text) <= ANNOTATION_BYTES,
    `has more than ${ANNOTATION_BYTES} bytes`,
  );

export const BATCH_OPS = z.object({
  ops: z.array(op).min(1),
  reason: optional(annotation),
  message: optional(annotation),
  author: optional(annotation),
  email: optional(annotation),
});

const filters = z.strictObject({
  pathPrefix: optional(z.string()),
  paths: optional(z.array(z.string())),
  tags: optional(z.array(z.string())),
  sessionIds: optional(z.array(z.string())),
  scope: optional(z.enum(["global", "project", "raw"])),
  project: optional(z.string()),
});

const dateOrDateTime = z
  .string()
  .refine(isDateOrDateTime, "must be YYYY-MM-DD or an RFC 3339 date-time");

const recency = z
  .strictObject({
    now: dateOrDateTime,
    relevance: z.number().min(0).max(1),
    weight: z.number().min(0).max(1),
    decayDays: z.number().min(1).max(36_500),
  })
  .refine(
    ({ relevance, weight }) => relevance + weight <= 1,
    "relevance and weight must not exceed 1 together",
  );

const temporal = z.strictObject({
  at: dateOrDateTime,
  toleranceDays: z.number().min(1).max(36_500),
  boost: z.number().min(0).max(1),
});

const tuning = z.strictObject({
  fusion: optional(z.enum(["minmax", "rrf"])),
  alpha: optional(z.number().min(0).max(1)),
  rrfK: optional(z.int().min(1).max(10_000)),
  poolFactor: optional(z.int().min(1).max(1_000)),
  poolFloor: optional(z.int().min(1).max(10_000)),
  kernel: optional(z.enum(["cosine", "inverse-l2"])),
  recency: optional(recency),
  temporal: optional(temporal),
});

const topK = z.int().min(1).max(1_000);

const mode = z.enum(["auto", "bm25", "semantic", "hybrid", "hybrid-rerank", "conversation"]);

const retrieval = z.object({
  mode: withDefault(mode, "auto"),
  questionDate: optional(dateOrDateTime),
  candidateK: withDefault(z.int().min(0).max(10_000), 0),
  rerankTopN: withDefault(z.int().min(0).max(1_000), 0),
  filters: optional(filters),
  tuning: optional(tuning),
});

export const SEARCH = retrieval.extend({ query: notBlank, topK: withDefault(topK, 10) });

export const ASK = retrieval.extend({
  question: notBlank,
  topK: withDefault(topK, 5),
  readerMode: withDefault(z.enum(["basic", "augmented"]), "basic"),
  model: optional(z.string()),
});

export type Ask = z.output<typeof ASK>;
