/** Sidecars: what an ingest sends besides the content, stored as JSON. */

import { z } from "zod";

import { DEPTH_LIMIT, isNestedOver } from "../wire/check.js";
import { isFinite, parseExactly, stringifyExactly } from "../wire/exactJson.js";

/** What an ingest sends besides the content. */
export interface Sidecar {
  contentType: string;
  title?: string | undefined;
  tags?: string[] | undefined;
  metadata?: Record<string, unknown> | undefined;
}

/** Kept unchanged, whatever its keys are. */
export const METADATA = z
  .custom<Record<string, unknown>>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value),
    "must be an object",
  )
  .refine(isFinite, "contains a number that is not a finite float64");

/** Anybody may have written the file: an invalid value counts as absent. */
const STORED_SIDECAR = z
  .object({
    title: z.string().optional().catch(undefined),
    tags: z.array(z.string()).optional().catch(undefined),
    metadata: METADATA.refine((value) => !isNestedOver(DEPTH_LIMIT, value))
      .optional()
      .catch(undefined),
  })
  .catch({});

/** Encode a sidecar as JSON. */
export function writeSidecar(document: Sidecar): Buffer {
  const { contentType, title, tags, metadata } = document;
  return Buffer.from(stringifyExactly({ contentType, title, tags, metadata }));
}

/** Decode a sidecar; a missing or malformed one is empty. */
export function readSidecar(bytes: Buffer | undefined): Omit<Sidecar, "contentType"> {
  try {
    return STORED_SIDECAR.parse(parseExactly(bytes?.toString() ?? "{}"));
  } catch (error) {
    // A RangeError: it is nested so deep that the parser's stack does not suffice.
    if (error instanceof SyntaxError || error instanceof RangeError) return {};
    throw error;
  }
}
