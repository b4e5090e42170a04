/** The dates of requests and documents. */

const MOMENT =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.\d+)?(?:[Zz]|([+-])((?:[01]\d|2[0-3])):([0-5]\d)))?$/;

/** The first and the last second that RFC 3339 can express in every language. */
const FIRST_MS = Date.parse("0001-01-01T00:00:00Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59Z");

/** The time, or the nearest one that RFC 3339 can express: files may have others. */
export function rfc3339(ms: number): string {
  return new Date(Math.min(Math.max(ms, FIRST_MS), LAST_MS)).toISOString();
}

/** Whether `text` is a date, `YYYY-MM-DD`, or an RFC 3339 date-time. */
export function isDateOrDateTime(text: string): boolean {
  return epochSeconds(text) !== undefined;
}

/**
 * The seconds from 1970 to a date or an RFC 3339 date-time, without fractions of a second; undefined if
 * `text` is neither.
 */
export function epochSeconds(text: string): number | undefined {
  const [, day, clock = "00:00:00", sign, hours = 0, minutes = 0] = MOMENT.exec(text) ?? [];
  if (day === undefined || !isDay(day)) return undefined;
  const offset = 3600 * Number(hours) + 60 * Number(minutes);
  return Date.parse(`${day}T${clock}Z`) / 1000 - (sign === "-" ? -offset : offset);
}

/** Whether the day exists. `Date` reads 30 February as 1 March, so the round trip reveals it. */
function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}
