/** The page of one question, the SDKs side by side: its title, and its parts, which are not shown yet. */
async function questionPage(parameters) {
  const questions = await questionsOf(await groupNumber(parameters));
  const id = parameters.get("id") ?? "";
  const at = questions.positions.get(id);
  if (at === undefined) {
    return ["Question not found", [el("p", { class: "notice" }, `These runs have no question ${JSON.stringify(id)}.`)]];
  }
  const details = await questions.details(at);
  const filters = Object.fromEntries(FILTERS.map((name) => [name, parameters.get(name)]));
  const order = selectQuestions(questions, parameters);
  const several = questions.runs.length > 1;
  const parts = [
    pager(questions, order, at, filters),
    el("p", { class: "note" }, `${questions.ids[at]} · ${questions.group.name}`, tagList(questions, at, filters)),
    ...(several ? [divergenceList(questions, details, at)] : []),
    el("div", { class: "sides" }, ...questions.runs.map((_, run) => side(questions, details, at, run))),
    el("h2", {}, "Ranking"),
    el("div", { class: "sides" }, ...questions.runs.map((_, run) => ranking(questions, details, run))),
    ...traces(questions, details),
    el("h2", {}, "Repeat it"),
    ...repeating(questions, details, at),
  ];
  return [questions.texts[at], parts];
}

function pager(questions, order, at, filters) {
  const position = order.indexOf(at);
  const link = (step, label, key) => {
    const next = position < 0 ? undefined : order[position + step];
    if (next === undefined) return el("span", { class: "note" }, label);
    const target = address("question", { ...filters, g: questions.group.key, id: questions.ids[next] });
    return el("a", { href: target, rel: step < 0 ? "prev" : "next", title: `key ${key}` }, label);
  };
  const back = address("questions", { ...filters, g: questions.group.key });
  const place = position < 0 ? "not in the filtered list" : `${NUMBER.format(position + 1)} of ${NUMBER.format(order.length)}`;
  return el("nav", { class: "pager", "aria-label": "Questions" }, el("a", { href: back }, "All questions"), link(-1, "← Previous", "k"), link(1, "Next →", "j"), el("span", { class: "note" }, place));
}

function tagList(questions, at, filters) {
  const list = el("span", {});
  for (const tag of questions.tags[at]) {
    const name = questions.tagNames[tag];
    list.append(" · ", el("a", { href: address("questions", { ...filters, g: questions.group.key, tag: name }) }, name));
  }
  return list;
}

function divergenceList(questions, details, at) {
  if (details.divergences.length === 0) {
    const measured = questions.runs.filter((_, run) => questions.measured.has(questions.status[run][at]));
    if (measured.length < 2) return el("p", {}, "Fewer than two SDKs measured this question.");
    return el("p", {}, `${measured.map((run) => run.name).join(", ")} agree on this question.`);
  }
  const lines = details.divergences.map(([first, second, stage, detail]) => {
    const names = [questions.runs[first].name, questions.runs[second].name];
    return el("li", {}, `${names.join(" and ")} differ at the stage `, el("strong", {}, stage), `; ${names[1]}: ${detail}`);
  });
  return el("ul", {}, ...lines);
}

/** The run that others are compared with: the first one that was measured. */
function reference(questions, at) {
  return questions.runs.findIndex((_, run) => questions.measured.has(questions.status[run][at]));
}

function side(questions, details, at, run) {
  const own = details.runs[run];
  const status = questions.statusOf(at, run);
  const score = questions.score[run][at];
  const answer = questions.answer(at, run);
  const first = reference(questions, at);
  const other = run === first || first < 0 ? null : questions.answer(at, first);
  const head = el("h3", {}, `${questions.runs[run].name} `, badge(status));
  const facts = [
    score === null ? null : ["score", String(score)],
    own.reason ? ["reason", own.reason] : null,
    questions.firstHit[run][at] ? ["first hit", `rank ${questions.firstHit[run][at]}`] : null,
    own.redacted ? ["secrets", "masked in this answer; the unmasked text was scored"] : null,
  ].filter((fact) => fact !== null);
  const list = el("dl", { class: "pairs" });
  for (const [name, value] of facts) list.append(el("dt", {}, name), el("dd", {}, value));
  const parts = [head, list];
  if (own.error) parts.push(...failure(own));
  if (answer !== null) {
    const box = el("div", { class: "answer", tabindex: "0", role: "region", "aria-label": `Answer of ${questions.runs[run].name}` });
    addAll(box, markedText(answer, other));
    parts.push(box);
  }
  if (own.citations.length) {
    parts.push(el("p", { class: "note" }, `cites ${own.citations.map(([path]) => path).join(", ")}`));
  }
  if (own.timings) parts.push(timeline(own.timings, slowest(details)));
  if (own.votes) parts.push(votes(own.votes));
  if (own.attempts) parts.push(attempts(own.attempts));
  return el("section", { class: "side", "aria-label": questions.runs[run].name }, ...parts);
}

function failure(own) {
  const [code, message, body, curl] = own.error;
  const parts = [el("p", { class: "notice" }, el("strong", {}, code), `: ${message}`)];
  if (body) parts.push(el("details", {}, el("summary", {}, "What the daemon sent"), el("pre", { tabindex: "0" }, body)));
  if (curl) parts.push(command(curl));
  if (own.wire) parts.push(el("details", {}, el("summary", {}, "The exchange"), el("pre", { tabindex: "0" }, own.wire)));
  return parts;
}

/** The end of the slowest answer, so that all timelines have one scale. */
function slowest(details) {
  const moments = details.runs.flatMap((run) => run.timings ?? []).filter((value) => value !== null);
  return Math.max(...moments, 0.001);
}

const MOMENTS = ["first byte", "first event", "first delta", "done"];

/** When the events of an answer came, in ms since the request was sent. */
function timeline(timings, end) {
  const text = MOMENTS.map((name, index) => [name, timings[index]]).filter(([, value]) => value !== null);
  const spoken = text.map(([name, value]) => `${name} ${value.toFixed(1)} ms`).join(", ");
  const dots = text.flatMap(([, value]) => svg("rect", { class: "dot", x: (297 * value) / end, y: 2, width: 3, height: 16 }));
  const drawing = svg("svg", { class: "timeline", viewBox: "0 0 300 20", role: "img", "aria-label": spoken, preserveAspectRatio: "none" }, svg("rect", { class: "track", x: 0, y: 9, width: 300, height: 2 }), ...dots);
  return el("div", {}, drawing, el("p", { class: "note" }, spoken));
}

function table(caption, headings, rows) {
  const head = el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading)));
  const body = rows.map((row) => el("tr", {}, ...row.map((cell) => (cell instanceof Node ? cell : el("td", {}, cell)))));
  return el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, ...body));
}

function votes(list) {
  const rows = list.map(([model, served, verdict, score, reason, attempt]) => [
    served && served !== model ? `${model} (${served})` : model,
    verdict ?? "no verdict",
    score === null ? "-" : String(score),
    reason,
    String(attempt + 1),
  ]);
  return table("Judges", ["model", "verdict", "score", "reason", "attempt"], rows);
}

function attempts(list) {
  const rows = list.map(([verdict, score, ms], index) => [
    String(index + 1),
    el("td", {}, badge(verdict)),
    score === null ? "-" : String(score),
    ms === null ? "-" : ms.toFixed(1),
  ]);
  return table("Attempts", ["attempt", "status", "score", "ms"], rows);
}

/** A ranking, with what differs from the first measured run's marked, rank by rank. */
function ranking(questions, details, run) {
  const own = details.runs[run].ranking;
  const first = details.runs.findIndex((other) => other.ranking.length > 0);
  const base = run === first || first < 0 ? null : details.runs[first].ranking;
  const name = questions.runs[run].name;
  if (own.length === 0) return el("section", { class: "side", "aria-label": `Ranking of ${name}` }, el("h3", {}, name), el("p", { class: "note" }, "no ranking is stored"));
  const rows = own.map(([path, chunk, score, content], rank) => {
    const other = base?.[rank];
    const isSame = base === null || (other !== undefined && (content && other[3] ? content === other[3] : chunk === other[1]));
    const isEqual = base === null || (isSame && Math.abs(score - other[2]) <= 1e-6);
    return el(
      "tr",
      {},
      el("td", { class: "rank" }, String(rank + 1)),
      el("td", { class: isSame ? null : "differs", title: chunk }, path),
      el("td", { class: `number${isEqual ? "" : " differs"}` }, score.toPrecision(7)),
    );
  });
  const head = el("tr", {}, el("th", { scope: "col", class: "rank" }, "#"), el("th", { scope: "col" }, "path"), el("th", { scope: "col", class: "points number" }, "score"));
  return el("section", { class: "side", "aria-label": `Ranking of ${name}` }, el("h3", {}, name), el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
}

/** The traces, a key a row; values that differ are marked. */
function traces(questions, details) {
  const all = details.runs.map((run) => run.trace ?? {});
  const keys = [...new Set(all.flatMap((trace) => Object.keys(trace)))].sort();
  if (keys.length === 0) return [];
  const rows = keys.map((key) => {
    const values = all.map((trace) => (Object.hasOwn(trace, key) ? JSON.stringify(trace[key]) : "-"));
    const differs = key !== "searchMs" && new Set(values).size > 1;
    return [el("th", { scope: "row" }, key), ...values.map((value) => el("td", { class: differs ? "differs" : null }, value))];
  });
  const content = table("As each daemon reports it", ["key", ...questions.runs.map((run) => run.name)], rows);
  return [el("details", {}, el("summary", {}, "Trace of the retrieval"), el("div", { class: "scroll" }, content))];
}

function repeating(questions, details, at) {
  const parts = questions.runs.map((run) => command([...run.repeat, ...(run.byId && !questions.ids[at].includes(",") ? ["--ids", questions.ids[at]] : [])].map(quoted).join(" ")));
  const body = details.runs.map((run) => run.request).find(Boolean);
  if (body) {
    const route = questions.group.scenario === "search-retrieve-only" ? "search" : "ask";
    parts.push(
      el("p", { class: "note" }, "Or send the request to a daemon that holds the same documents:"),
      command(`curl -sS -N -i -X POST "$DAEMON/v1/brains/$BRAIN/${route}" -H 'content-type: application/json' --data-raw ${quoted(body)}`),
    );
  }
  return parts;
}
