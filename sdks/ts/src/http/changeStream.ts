/** The changes of a brain, as a stream of events. */

import { Readable } from "node:stream";

import type { Changes, Listener, AnnouncedChange } from "../brain/changes.js";

/** Changes that wait for a client which does not read; behind them its stream is cut. */
const QUEUE_LIMIT = 1024;

/** Of silence, until a ping: proxies and clients take a long one for an end. */
const PING_MS = 15_000;

type Event = "ready" | "ping" | [id: number, change: AnnouncedChange];

export class ChangeStream extends Readable implements Listener {
  /** Put into words as they are read: a thousand changes may share a reason of megabytes. */
  readonly #queue: Event[] = ["ready"];
  readonly #silence: NodeJS.Timeout;
  readonly #unlisten: () => void;
  #wanted = false;
  #ended = false;

  constructor(changes: Pick<Changes, "listen">, pingMs = PING_MS) {
    super({ highWaterMark: 1 });
    this.#silence = setInterval(() => {
      this.#add(["ping"]);
    }, pingMs);
    this.#unlisten = changes.listen(this);
  }

  changed(changes: readonly [id: number, change: AnnouncedChange][]): void {
    this.#add(changes);
  }

  gone(): void {
    this.end();
  }

  /** What is in the queue is still sent. */
  end(): void {
    this.#release();
    this.#ended = true;
    if (this.#wanted) this._read();
  }

  override _read(): void {
    const event = this.#queue.shift();
    this.#wanted = event === undefined;
    if (event !== undefined) this.push(text(event));
    else if (this.#ended) this.push(null);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#release();
    callback(error);
  }

  /** A commit's changes stay together, so a client that reads is not cut for a large batch. */
  #add(events: readonly Event[]): void {
    if (this.#queue.length >= QUEUE_LIMIT) {
      this.destroy();
      return;
    }
    this.#silence.refresh();
    this.#queue.push(...events);
    if (this.#wanted) this._read();
  }

  #release(): void {
    clearInterval(this.#silence);
    this.#unlisten();
  }
}

function text(event: Event): string {
  if (typeof event === "string") return `event: ${event}\ndata: ok\n\n`;
  const [id, change] = event;
  return `event: change\nid: ${id}\ndata: ${JSON.stringify(change)}\n\n`;
}
