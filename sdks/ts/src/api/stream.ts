/** The changes of a brain, as a stream of server-sent events. */

import { Readable } from "node:stream";

import type { Feed, Subscriber, AnnouncedChange } from "../feed.js";

/** A stream with so many unsent changes when another commit comes is ended, after those changes. */
const QUEUE_LIMIT = 1024;

/** Silence before a ping: proxies and clients close connections that stay silent for long. */
const PING_MS = 15_000;

/** A client that reads nothing for so many pings, two minutes, counts as disconnected. */
const STALLED_PINGS = 8;

type Event = "ping" | [id: number, change: AnnouncedChange];

/** The event stream of one client. */
export class ChangeStream extends Readable implements Subscriber {
  /** Events are serialized when they are read, because a thousand changes may share a long reason. */
  readonly #queue: Event[] = [];
  readonly #silence: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  #wanted = false;
  #unreadPings = 0;
  #ended = false;

  constructor(feed: Pick<Feed, "subscribe">, pingMs = PING_MS) {
    super({ highWaterMark: 1 });
    this.#silence = setInterval(() => {
      // A client that still has something to read needs no ping.
      if (this.#wanted) this.add(["ping"]);
      else if (++this.#unreadPings >= STALLED_PINGS) this.destroy();
    }, pingMs);
    this.#unsubscribe = feed.subscribe(this);
    this.push("event: ready\ndata: ok\n\n");
  }

  /** End the stream after the queued events. */
  end(): void {
    this.#unsubscribe();
    this.#ended = true;
    if (this.#wanted) this._read();
  }

  override _read(): void {
    this.#unreadPings = 0;
    const event = this.#queue.shift();
    this.#wanted = event === undefined;
    if (event !== undefined) this.push(text(event));
    else if (this.#ended) this.push(null);
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    clearInterval(this.#silence);
    this.#unsubscribe();
    callback(error);
  }

  /** Changes of a commit are queued together, so a large batch alone never cuts off a client. */
  add(events: readonly Event[]): void {
    if (this.#queue.length >= QUEUE_LIMIT) {
      this.end();
      return;
    }
    this.#silence.refresh();
    this.#queue.push(...events);
    if (this.#wanted) this._read();
  }
}

function text(event: Event): string {
  if (event === "ping") return "event: ping\ndata: ok\n\n";
  const [id, change] = event;
  return `event: change\nid: ${id}\ndata: ${JSON.stringify(change)}\n\n`;
}
