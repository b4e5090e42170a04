/** `fh256-1`: signed feature hashing of terms and of adjacent pairs of terms. */

import { terms } from "../text/terms.js";
import { type Embedder, normalize } from "./embed.js";

const DIMENSIONS = 256;
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** A test double: its vectors know no meanings. */
export const FEATURE_HASH = "fh256-1";

export class FeatureHash implements Embedder {
  readonly name = FEATURE_HASH;
  readonly model = FEATURE_HASH;

  embed(texts: readonly string[]): Promise<Float32Array[]> {
    return Promise.resolve(texts.map(featureHash));
  }
}

function featureHash(text: string): Float32Array {
  const counts = new Array<number>(DIMENSIONS).fill(0);
  const add = (hash: number): void => {
    const index = hash & 0xff;
    counts[index] = (counts[index] ?? 0) + (hash >>> 31 === 1 ? -1 : 1);
  };
  // FNV-1a runs from left to right, so the hash of a pair continues that of its first term.
  let previous: number | undefined;
  for (const term of terms(text)) {
    if (previous !== undefined) add(fnv1a(` ${term}`, previous));
    previous = fnv1a(term);
    add(previous);
  }
  return normalize(counts);
}

/** 32-bit FNV-1a over the UTF-8 bytes of `text`, continuing from `hash`. */
export function fnv1a(text: string, hash = FNV_OFFSET): number {
  let value = hash;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return fnv1aBytes(Buffer.from(text.slice(i)), value);
    value = Math.imul(value ^ unit, FNV_PRIME);
  }
  return value >>> 0;
}

function fnv1aBytes(bytes: Uint8Array, hash: number): number {
  let value = hash;
  for (const byte of bytes) value = Math.imul(value ^ byte, FNV_PRIME);
  return value >>> 0;
}
