/** Who wants to know what changes in a brain, and is announced. */

/** As it stands in the stream of events. */
export interface Change {
  kind: "created" | "updated" | "deleted" | "renamed";
  path: string;
  old_path?: string;
}

export interface AnnouncedChange extends Change {
  reason?: string | undefined;
  when: string;
}

export interface Listener {
  /** The changes of one commit; it must not throw. */
  changed(changes: readonly [id: number, change: AnnouncedChange][]): void;
  /** Nothing will change any more: the brain has gone. */
  gone(): void;
}

export class Changes {
  readonly #listeners = new Set<Listener>();
  /** Rises over restarts too, as long as there are fewer than a million changes a second. */
  #lastId = Date.now() * 1000;

  /** Returns what ends it. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Called at the commit, so that the order of ids is the order of commits. */
  publish(changes: readonly Change[], reason: string | undefined): void {
    const when = new Date().toISOString();
    const announced = changes.map((change): [number, AnnouncedChange] => [
      ++this.#lastId,
      { ...change, reason, when },
    ]);
    for (const listener of this.#listeners) listener.changed(announced);
  }

  end(): void {
    for (const listener of this.#listeners) listener.gone();
    this.#listeners.clear();
  }
}
