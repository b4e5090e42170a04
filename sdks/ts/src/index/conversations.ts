/** The conversations of a brain: the order of its chunks in their sessions, and who speaks. */

import { LONGEST_TURN, Places } from "../rank/conversation.js";
import { compareUtf8 } from "../text/order.js";
import { terms } from "../text/terms.js";
import { Pace } from "./pace.js";
import { FREE } from "./postings.js";
import type { Slots, StoredDocument, Turn } from "./slots.js";

/** How many documents are looked at before the clock is; their chunks may be long. */
const PIECE = 256;

/** Who speaks what is no turn, or has no name. */
const NOBODY = 0;

const NO_TURN: Turn = { session: "", index: Infinity, speaker: "" };

/** @param metadata JSON. */
export function turnOf(sessionId: string | undefined, metadata: string): Turn {
  if (sessionId === undefined || sessionId === "") return NO_TURN;
  const { index, speaker } = JSON.parse(metadata) as Record<string, unknown>;
  return {
    session: sessionId,
    index: typeof index === "number" && Number.isFinite(index) ? index : Infinity,
    speaker: typeof speaker === "string" ? speaker : "",
  };
}

/** Immutable. The order does not depend on what was stored first, so that sums have equal bits. */
export class Conversations {
  /** The slot at each place. */
  readonly slots: Uint32Array;
  readonly places: Places;
  /** The place of each slot, or `FREE`. */
  readonly #placeOf: Uint32Array;
  /** The number of the speaker at each place. */
  readonly #speakers: Uint32Array;
  /** The terms of each speaker's name. */
  readonly #names: readonly (readonly string[])[];

  /** Order the chunks in `slots`, which are so many, while other requests are served. */
  static async of(slots: Slots, chunks: number): Promise<Conversations> {
    const pace = new Pace();
    const sessions = await bySession(slots, pace);
    const layout = new Layout(slots.length, chunks);
    for (const session of await sorted([...sessions.keys()], compareText, pace)) {
      const documents = await sorted(sessions.get(session) ?? [], compareTurns, pace);
      for (const [n, document] of documents.entries()) {
        if (n % PIECE === 0 && pace.isOver) await pace.rest();
        layout.add(document);
      }
    }
    return new Conversations(layout);
  }

  private constructor(layout: Layout) {
    this.slots = layout.slots;
    this.places = new Places(layout.sessions, layout.points, layout.asks);
    this.#placeOf = layout.placeOf;
    this.#speakers = layout.speakers;
    this.#names = layout.names;
  }

  /** Undefined if the slot is free. */
  readonly placeOf = (slot: number): number | undefined => {
    const place = this.#placeOf[slot];
    return place === FREE ? undefined : place;
  };

  /** Whether a query of these terms names the speaker at a place. */
  named(queryTerms: readonly string[]): (place: number) => boolean {
    const asked = new Set(queryTerms);
    const named = this.#names.map(
      (name) => name.length > 0 && name.every((term) => asked.has(term)),
    );
    return (place) => named[this.#speakers[place] ?? NOBODY] ?? false;
  }
}

/** The conversations, while they are laid out. */
class Layout {
  readonly slots: Uint32Array;
  readonly sessions: Uint32Array;
  readonly points: Uint16Array;
  readonly asks: Uint8Array;
  readonly speakers: Uint32Array;
  readonly placeOf: Uint32Array;
  readonly names: string[][] = [[]];
  readonly #numbers = new Map([["", NOBODY]]);
  #size = 0;
  #session = 0;
  #sessionId = "";

  constructor(slots: number, chunks: number) {
    this.slots = new Uint32Array(chunks);
    this.sessions = new Uint32Array(chunks);
    this.points = new Uint16Array(chunks);
    this.asks = new Uint8Array(chunks);
    this.speakers = new Uint32Array(chunks);
    this.placeOf = new Uint32Array(slots).fill(FREE);
  }

  add({ turn, chunks, firstSlot }: StoredDocument): void {
    const speaker = this.#speaker(turn.speaker);
    for (const [ordinal, text] of chunks.entries()) {
      const place = this.#size++;
      if (turn.session === "" || turn.session !== this.#sessionId) this.#session++;
      this.#sessionId = turn.session;
      this.placeOf[firstSlot + ordinal] = place;
      this.slots[place] = firstSlot + ordinal;
      this.sessions[place] = this.#session;
      this.speakers[place] = speaker;
      this.points[place] = points(text);
      this.asks[place] = text.includes("?") ? 1 : 0;
    }
  }

  /** The number of a speaker, who is nobody if the name has no term. */
  #speaker(name: string): number {
    let number = this.#numbers.get(name);
    if (number === undefined) {
      const words = terms(name);
      number = words.length === 0 ? NOBODY : this.names.push(words) - 1;
      this.#numbers.set(name, number);
    }
    return number;
  }
}

/** The number of code points, at most `LONGEST_TURN`. */
function points(text: string): number {
  const start = text.slice(0, 2 * LONGEST_TURN);
  const pairs = start.match(/[\udc00-\udfff]/g)?.length ?? 0;
  return Math.min(start.length - pairs, LONGEST_TURN);
}

/** The documents that have chunks, by session; those without one are of the session "". */
async function bySession(slots: Slots, pace: Pace): Promise<Map<string, StoredDocument[]>> {
  const sessions = new Map<string, StoredDocument[]>();
  for (const [slot, document] of slots.entries()) {
    if (slot % PIECE === 0 && pace.isOver) await pace.rest();
    if (document?.firstSlot !== slot) continue;
    const others = sessions.get(document.turn.session);
    if (others === undefined) sessions.set(document.turn.session, [document]);
    else others.push(document);
  }
  return sessions;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : 1;
}

/** The order of a session. */
function compareTurns(a: StoredDocument, b: StoredDocument): number {
  if (a.turn.index !== b.turn.index) return a.turn.index < b.turn.index ? -1 : 1;
  return compareUtf8(a.path, b.path);
}

/** Sort in pieces and merge them: 100,000 paths that are sorted at once hold others for 200 ms. */
async function sorted<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
  pace: Pace,
): Promise<T[]> {
  let runs: T[][] = [];
  for (let start = 0; start < items.length; start += PIECE) {
    if (pace.isOver) await pace.rest();
    runs.push(items.slice(start, start + PIECE).sort(compare));
  }
  while (runs.length > 1) {
    const longer: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      longer.push(await merged(runs[i] ?? [], runs[i + 1] ?? [], compare, pace));
    }
    runs = longer;
  }
  return runs[0] ?? [];
}

async function merged<T>(
  a: readonly T[],
  b: readonly T[],
  compare: (a: T, b: T) => number,
  pace: Pace,
): Promise<T[]> {
  const result: T[] = [];
  for (let i = 0, j = 0; ;) {
    if (result.length % PIECE === 0 && pace.isOver) await pace.rest();
    const [one, other] = [a[i], b[j]];
    if (one === undefined) return result.concat(b.slice(j));
    if (other === undefined) return result.concat(a.slice(i));
    const isFirst = compare(one, other) < 0;
    result.push(isFirst ? one : other);
    if (isFirst) i++;
    else j++;
  }
}
