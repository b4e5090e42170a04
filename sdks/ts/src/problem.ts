/** The failures that a request can end with, as `application/problem+json`. */

export const STATUS = {
  validation_error: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  payload_too_large: 413,
  confirmation_required: 428,
  internal_error: 500,
  bad_gateway: 502,
  timeout: 504,
} as const;

export type ProblemCode = keyof typeof STATUS;

/** A failure with its contract error code; `detail` is shown to the client. */
export class Problem extends Error {
  readonly status: number;

  constructor(
    readonly code: ProblemCode,
    readonly detail: string,
    options?: ErrorOptions,
  ) {
    super(`${code}: ${detail}`, options);
    this.status = STATUS[code];
  }

  /** The problem document that the client receives. */
  get body(): { status: number; title: string; detail: string; code: ProblemCode } {
    const words = this.code.replaceAll("_", " ");
    const title = words.charAt(0).toUpperCase() + words.slice(1);
    return { status: this.status, title, detail: this.detail, code: this.code };
  }
}

/** A Problem `validation_error`. */
export function invalid(detail: string): Problem {
  return new Problem("validation_error", detail);
}
