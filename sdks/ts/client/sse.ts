/** Server-sent events, as the HTML standard defines them, from the bytes of a response. */

const LF = 0x0a;
const CR = 0x0d;
const BYTE_ORDER_MARK = Buffer.from("\ufeff");

/** An event as it was sent: its data is not checked. */
export interface RawEvent {
  name: string;
  data: Buffer;
}

/** Turns reads, wherever they are cut, into events. */
export class EventDecoder {
  /** The line whose end has not come, in the pieces in which it was read. */
  #line: Buffer[] = [];
  #isFirstLine = true;
  #endedWithCR = false;
  #name = "";
  #data: Buffer[] = [];

  /** Yield each event that ends in this read, also at a CR that may be half of a CRLF. */
  *feed(read: Buffer): Generator<RawEvent, void, undefined> {
    if (read.length === 0) return;
    let start = this.#endedWithCR && read[0] === LF ? 1 : 0;
    for (let at = start; at < read.length; at++) {
      if (read[at] !== LF && read[at] !== CR) continue;
      this.#line.push(read.subarray(start, at));
      if (read[at] === CR && read[at + 1] === LF) at++;
      start = at + 1;
      const line = Buffer.concat(this.#line);
      this.#line = [];
      const event = this.#take(line);
      if (event !== undefined) yield event;
    }
    this.#line.push(read.subarray(start));
    this.#endedWithCR = read[read.length - 1] === CR;
  }

  #take(line: Buffer): RawEvent | undefined {
    if (this.#isFirstLine) {
      this.#isFirstLine = false;
      if (line.subarray(0, 3).equals(BYTE_ORDER_MARK)) line = line.subarray(3);
    }
    if (line.length === 0) return this.#dispatch();
    const colon = line.indexOf(":");
    const end = colon < 0 ? line.length : colon;
    let value = line.subarray(end + 1);
    if (value[0] === 0x20) value = value.subarray(1);
    const field = line.toString("latin1", 0, end);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#name = value.toString();
    return undefined;
  }

  #dispatch(): RawEvent | undefined {
    const name = this.#name || "message";
    const parts = this.#data.flatMap((part) => [Buffer.of(LF), part]).slice(1);
    const hasData = this.#data.length > 0;
    this.#name = "";
    this.#data = [];
    return hasData ? { name, data: Buffer.concat(parts) } : undefined;
  }
}
