/** Why a call failed. */

/**
 * How a call failed: the daemon answered with a status other than 2xx (`http`), or said in its stream that the answer
 * failed (`daemon`); the response broke off (`cut`); a limit passed (`timeout`); what came is no response of the
 * contract (`protocol`); there was no response (`connection`).
 */
export type Kind = "http" | "daemon" | "cut" | "timeout" | "protocol" | "connection";

interface Details {
  status?: number | undefined;
  code?: string | undefined;
  cause?: unknown;
}

/** A call failed. */
export class CallError extends Error {
  override readonly name = "CallError";
  readonly kind: Kind;
  /** The status of the response, for the kind `http`. */
  readonly status: number | undefined;
  /** The `code` of the daemon's problem, or of its `error` event. */
  readonly code: string | undefined;

  constructor(kind: Kind, message: string, { status, code, cause }: Details = {}) {
    super(message, { cause });
    this.kind = kind;
    this.status = status;
    this.code = code;
  }
}
