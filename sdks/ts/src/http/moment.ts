const DAY = /^\d{4}-\d{2}-\d{2}$/;
const INSTANT =
  /^(\d{4}-\d{2}-\d{2})[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Whether `text` is a day, as `YYYY-MM-DD`, or a date-time of RFC 3339. */
export function isMoment(text: string): boolean {
  const day = DAY.test(text) ? text : INSTANT.exec(text)?.[1];
  return day !== undefined && isDay(day);
}

/** `Date` takes the 30th of February for the 1st of March, and so shows it. */
function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}
