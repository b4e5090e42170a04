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

export interface Listener {
  /** Receives the changes of one commit; must not throw. */
  onChanges(changes: readonly [id: number, change: AnnouncedChange][]): void;
  /** Called when the brain is closed or deleted: no more changes follow. */
  onEnd(): void;
}

/** Publishes changes to the listeners of one brain. */
export class Feed {
  readonly #listeners = new Set<Listener>();
  /** Increases across restarts too, up to a million changes a second. */
  #lastId = Date.now() * 1000;

  /** Subscribe; returns the function that unsubscribes. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  /** Announce the changes of a commit. Called inside it, so that ids follow the order of commits. */
  publish(changes: readonly Change[], reason: string | undefined): void {
    const when = new Date().toISOString();
    const announced = changes.map((change): [number, AnnouncedChange] => [
      ++this.#lastId,
      { ...change, reason, when },
    ]);
    for (const listener of this.#listeners) listener.onChanges(announced);
  }

  end(): void {
    for (const listener of this.#listeners) listener.onEnd();
    this.#listeners.clear();
  }
}
