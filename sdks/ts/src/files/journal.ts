/**
 * The journal of a change, on disk so that any daemon can undo it after a kill. Its format is the
 * contract's (state.journal), the same for every SDK.
 */

import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";

import { z } from "zod";

import { contentOf, statusOf } from "./tree.js";

const NAME = "journal";

/** Relative to the state folder, which may be moved. */
const TARGET = /^(?:brains|meta)\/[A-Za-z0-9._-]{1,128}\/[^\0]+$/;

const target = z
  .string()
  .regex(TARGET)
  .refine((path) => path.split("/").every(isName));

/** The name of a file in the change's folder. */
const name = z
  .string()
  .refine((file) => isName(file) && file !== NAME && !file.includes("/") && !file.includes("\0"));

const PUT = z.strictObject({ put: target, new: name, old: name });
const REMOVE = z.strictObject({ remove: target, old: name });

/** A step: a file is put at, or removed from, a path; `old` is what was there. */
const STEP = z.union([PUT, REMOVE]);

export type PutStep = z.infer<typeof PUT>;
export type Step = z.infer<typeof STEP>;

/** Records steps before they are taken; undoing a step that was not taken does no harm. */
export class Journal {
  readonly steps: Step[] = [];
  readonly #file: number;

  constructor(change: string) {
    this.#file = openSync(join(change, NAME), "ax");
  }

  record(steps: readonly Step[]): void {
    const lines = Buffer.from(steps.map((step) => `${JSON.stringify(step)}\n`).join(""));
    if (writeSync(this.#file, lines) !== lines.length)
      throw new Error("the journal cannot be written");
    this.steps.push(...steps);
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Remove the journal: from then on nobody undoes the change. */
export function endJournal(change: string): void {
  rmSync(join(change, NAME), { force: true });
}

export function hasJournal(folder: string): boolean {
  return statusOf(join(folder, NAME)) !== undefined;
}

/** @throws Error if a line is not a step, or the journal is a link, say. */
export function readSteps(change: string): Step[] {
  // A line without its newline was cut off by the kill, before its step was taken.
  const content = contentOf(join(change, NAME));
  if (content === undefined) throw new Error("the journal is not a regular file");
  const lines = content.toString().split("\n").slice(0, -1);
  return lines.map((line) => STEP.parse(JSON.parse(line)));
}

function isName(part: string): boolean {
  return part !== "" && part !== "." && part !== "..";
}
