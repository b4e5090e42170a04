/** Runs as they happen, from a stream of states. */

const cards = new Map();
let shownSummary = "";

function card(run) {
  const stop = el("button", { type: "button" }, "Stop");
  stop.addEventListener("click", () => void interrupt(run.id, stop));
  const parts = {
    title: el("h2"),
    bar: el("progress", { max: "1", value: "0" }),
    text: el("p", { class: "note" }),
    counts: el("p"),
    failures: el("ul", { class: "plain" }),
    stop,
  };
  const root = el("section", { class: "side" }, parts.title, parts.bar, parts.text, parts.counts, stop, parts.failures);
  return { root, ...parts };
}

async function interrupt(id, button) {
  button.disabled = true;
  button.textContent = "Stopping…";
  const answer = await fetch(`runs/${encodeURIComponent(id)}/stop`, { method: "POST" }).catch(() => null);
  if (answer?.ok) return;
  button.disabled = false;
  button.textContent = "Stop";
  say(answer === null ? "Not connected" : (await answer.text()).trim());
}

function duration(seconds) {
  const whole = Math.round(seconds);
  return whole < 90 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function update(parts, run) {
  parts.title.textContent = visible(`${run.sdk}: ${run.title}`);
  parts.bar.value = run.total ? run.done / run.total : 0;
  parts.bar.setAttribute("aria-label", visible(`${run.sdk}: ${run.done} of ${run.total} questions`));
  const left = run.left_s === null ? "" : `, ${duration(run.left_s)} left`;
  const state = run.alive ? "" : " · no process is seen to write it; run --resume continues a run that was killed";
  parts.text.textContent = `${NUMBER.format(run.done)} of ${count(run.total, "question")}, ${run.rate} a second${left}, since ${run.started}${state}`;
  parts.counts.replaceChildren(...Object.entries(run.statuses).flatMap(([status, number]) => [statusBadge(status, number), " "]));
  parts.stop.hidden = !run.alive;
  parts.failures.replaceChildren(...run.failures.map((failure) => el("li", {}, statusBadge(failure.status), ` ${failure.id} `, el("span", { class: "note" }, failure.reason))));
}

function statusBadge(status, number = "") {
  const known = ["correct", "incorrect", "abstained", "not_applicable"];
  return el("span", { class: `badge s-${known.includes(status) ? status : "unmeasured"}` }, `${number} ${status.replaceAll("_", " ")}`.trim());
}

function show(state) {
  const host = document.getElementById("runs");
  const ids = new Set(state.runs.map((run) => run.id));
  for (const [id, parts] of cards) {
    if (!ids.has(id)) {
      parts.root.remove();
      cards.delete(id);
    }
  }
  for (const run of state.runs.toReversed()) {
    if (!cards.has(run.id)) {
      cards.set(run.id, card(run));
      host.prepend(cards.get(run.id).root);
    }
    update(cards.get(run.id), run);
  }
  const running = state.runs.filter((run) => run.alive).length;
  const summary = `${running} ${state.finished}`;
  if (summary === shownSummary) return;
  shownSummary = summary;
  document.getElementById("connection").replaceChildren(
    `${count(running, "run")} in progress. `,
    el("a", { href: "report.html" }, `Report of ${count(state.finished, "finished run")}`),
  );
}

const source = new EventSource("events");
source.addEventListener("state", (event) => show(JSON.parse(event.data)));
source.addEventListener("error", () => {
  document.getElementById("connection").textContent = "Not connected: is `memconform view` still running?";
  shownSummary = "";
});
