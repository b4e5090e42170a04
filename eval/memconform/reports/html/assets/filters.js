const FILTERS = ["q", "sdk", "status", "tag", "stage", "differs", "regressed", "sort", "dir"];
const UNMEASURED = "unmeasured";

/** The positions of the questions that an address selects, in its order. */
function selectQuestions(questions, parameters) {
  const wanted = (name) => parameters.get(name) ?? "";
  const words = wanted("q").toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = questions.runs.findIndex((run) => run.name === wanted("sdk"));
  const runs = chosen < 0 ? questions.runs.keys() : [chosen].values();
  const of = [...runs];
  const status = questions.meta.statuses.indexOf(wanted("status"));
  const tag = questions.tagNames.indexOf(wanted("tag"));
  const stage = questions.meta.stages.indexOf(wanted("stage"));
  const regressed = chosen < 0 ? questions.regressedAny : questions.regressedRuns[chosen];
  const tests = [];
  if (words.length) tests.push((index) => words.every((word) => questions.haystack[index].includes(word)));
  if (wanted("status") === UNMEASURED) {
    const expected = questions.meta.statuses.indexOf("not_applicable");
    tests.push((index) =>
      of.some((run) => {
        const code = questions.status[run][index];
        return code !== expected && !questions.measured.has(code);
      }),
    );
  } else if (wanted("status")) {
    tests.push((index) => of.some((run) => questions.status[run][index] === status));
  }
  if (wanted("tag")) tests.push((index) => questions.tags[index].includes(tag));
  if (wanted("stage")) tests.push((index) => questions.stages[index].includes(stage));
  if (wanted("differs")) {
    tests.push((index) => {
      const outlier = questions.outliers[index];
      return questions.stages[index].length > 0 && (chosen < 0 || outlier < 0 || outlier === chosen);
    });
  }
  if (wanted("regressed")) tests.push((index) => regressed.has(index));
  const found = [];
  for (let index = 0; index < questions.size; index += 1) {
    if (tests.every((test) => test(index))) found.push(index);
  }
  return sorted(questions, found, wanted("sort"), wanted("dir"), chosen);
}

/** The value of a question by which it is sorted; null comes last in either direction. */
function sortKey(questions, name, chosen) {
  const [column, run] = name.split(":");
  const index = run === undefined ? Math.max(chosen, 0) : Number(run);
  if (!(index in questions.runs)) return null;
  if (column === "id") return (at) => questions.ids[at];
  if (column === "question") return (at) => questions.texts[at];
  if (column === "stage") return (at) => questions.stages[at][0] ?? null;
  if (column === "status") return (at) => questions.status[index][at];
  if (column === "ms") return (at) => questions.latency[index][at];
  return null;
}

function sorted(questions, found, name, direction, chosen) {
  const key = name ? sortKey(questions, name, chosen) : null;
  if (key === null) return found;
  const sign = direction === "desc" ? -1 : 1;
  const keys = new Map(found.map((at) => [at, key(at)]));
  return found.sort((a, b) => {
    const [x, y] = [keys.get(a), keys.get(b)];
    if (x === null || y === null) return x === y ? a - b : x === null ? 1 : -1;
    if (x === y) return a - b;
    return x < y ? -sign : sign;
  });
}

function fillSelect(select, options, value) {
  // A value that is no option is shown all the same: it explains why nothing is found.
  if (!options.some(([name]) => name === value)) options = [...options, [value, value]];
  select.replaceChildren(...options.map(([name, label]) => el("option", { value: name, selected: name === value }, label)));
  select.value = value;
}

/** Show the filters that an address has. */
function showFilters(form, questions, parameters) {
  const { meta } = questions;
  const value = (name) => parameters.get(name) ?? "";
  fillSelect(form.elements.namedItem("g"), meta.groups.map((group) => [group.key, group.name]), questions.group.key);
  fillSelect(form.elements.namedItem("sdk"), [["", "any"], ...questions.runs.map((run) => [run.name, run.name])], value("sdk"));
  const used = meta.statuses.filter((_, code) => questions.status.some((column) => column.includes(code)));
  const statuses = [...used, ...(used.includes(value("status")) || ["", UNMEASURED].includes(value("status")) ? [] : [value("status")])];
  fillSelect(
    form.elements.namedItem("status"),
    [["", "any"], [UNMEASURED, "not measured"], ...statuses.map((status) => [status, status.replaceAll("_", " ")])],
    value("status"),
  );
  fillSelect(form.elements.namedItem("tag"), [["", "any"], ...[...questions.tagNames].sort().map((tag) => [tag, tag])], value("tag"));
  fillSelect(form.elements.namedItem("stage"), [["", "any"], ...meta.stages.slice(1).map((stage) => [stage, stage])], value("stage"));
  form.elements.namedItem("differs").checked = value("differs") !== "";
  form.elements.namedItem("regressed").checked = value("regressed") !== "";
  form.querySelector("[data-needs=baseline]").hidden = questions.group.baselines.length === 0;
  const text = form.elements.namedItem("q");
  if (text !== document.activeElement) text.value = value("q");
}

/** The parameters that the form's state and the table's order make. */
function readFilters(form, parameters) {
  const field = (name) => form.elements.namedItem(name);
  return {
    g: field("g").value,
    q: field("q").value.trim(),
    sdk: field("sdk").value,
    status: field("status").value,
    tag: field("tag").value,
    stage: field("stage").value,
    differs: field("differs").checked ? "1" : "",
    regressed: field("regressed").checked ? "1" : "",
    sort: parameters.get("sort"),
    dir: parameters.get("dir"),
  };
}
