/** The changes of a brain, as a stream of server-sent events. */

import { Readable } from "node:stream";

import type { Feed, Listener, AnnouncedChange } from "../brain/changes.js";

/** Changes queued for a client that does not read; beyond this its stream is destroyed. */
const QUEUE_LIMIT = 1024;

/** Silence before a ping: proxies and clients close connections that stay silent for long. */
const PING_MS = 15_000;

type Event = "ready" | "ping" | [id: number, change: AnnouncedChange];

/** The event stream of one client. */
export class ChangeStream extends Readable implements Listener {
  /** Events are serialized when they are read, because a thousand changes may share a long reason. */
  readonly #queue: Event[] = ["ready"];
  readonly #silence: NodeJS.Timeout;
  readonly #unlisten: () => void;
  #wanted = false;
  #ended = false;

  constructor(changes: Pick<Feed, "listen">, pingMs = PING_MS) {
    super({ highWaterMark: 1 });
    this.#silence = setInterval(() => {
      this.#add(["ping"]);
    }, pingMs);
    this.#unlisten = changes.listen(this);
  }

  onChanges(changes: readonly [id: number, change: AnnouncedChange][]): void {
    this.#add(changes);
  }

  onEnd(): void {
    this.end();
  }

  /** End the stream after the queued events. */
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

  /** Changes of a commit are queued together, so a large batch alone never cuts off a client. */
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
