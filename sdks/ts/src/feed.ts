/** The feed of a brain's changes. */

/** A change as clients see it in the event stream. */
export interface Change {
  kind: "created" | "updated" | "deleted" | "renamed";
  path: string;
  old_path?: string;
}

export interface AnnouncedChange extends Change {
  reason?: string | undefined;
  when: string;
}

export interface Subscriber {
  /** Receives the changes of one commit; must not throw. */
  add(changes: readonly [id: number, change: AnnouncedChange][]): void;
  /** Called when the brain is closed or deleted: no more changes follow. */
  end(): void;
}

/** Publishes changes to the subscribers of one brain. */
export class Feed {
  readonly #subscribers = new Set<Subscriber>();
  /** Increases across restarts too, up to a million changes a second. */
  #lastId = Date.now() * 1000;

  /** Subscribe; returns the function that unsubscribes. */
  subscribe(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber);
    return () => {
      this.#subscribers.delete(subscriber);
    };
  }

  /** Announce the changes of a commit. Called inside it, so that ids follow the order of commits. */
  publish(changes: readonly Change[], reason: string | undefined): void {
    const when = new Date().toISOString();
    const announced = changes.map((change): [number, AnnouncedChange] => [
      ++this.#lastId,
      { ...change, reason, when },
    ]);
    for (const subscriber of this.#subscribers) subscriber.add(announced);
  }

  end(): void {
    for (const subscriber of this.#subscribers) subscriber.end();
    this.#subscribers.clear();
  }
}
