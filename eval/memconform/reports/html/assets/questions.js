/** Code of a status that has no score, as a class. */
function statusClass(status) {
  const known = ["correct", "incorrect", "abstained", "not_applicable"];
  return `s-${known.includes(status) ? status : "unmeasured"}`;
}

function badge(status) {
  return el("span", { class: `badge ${statusClass(status)}` }, status.replaceAll("_", " "));
}

/**
 * The questions of a group of runs, in columns, with what filters need.
 * Texts of answers are searched once they are decoded, in `searchText`.
 */
class Questions {
  /** @param {number} number @param {any} meta @param {any} columns */
  constructor(number, meta, columns) {
    Object.assign(this, columns);
    this.number = number;
    this.meta = meta;
    this.group = meta.groups[number];
    this.runs = this.group.runs;
    this.size = this.ids.length;
    this.positions = new Map(this.ids.map((id, index) => [id, index]));
    this.regressedRuns = this.regressed.map((list) => new Set(list));
    this.regressedAny = new Set(this.regressed.flat());
    this.measured = new Set(["correct", "incorrect", "abstained"].map((name) => meta.statuses.indexOf(name)));
    this.haystack = this.texts.map((text, index) => `${this.ids[index]}\n${text}`.toLowerCase());
    this.full = null;
  }

  /** Add answers and evidence paths to what is searched. */
  async searchText() {
    if (this.full === null) {
      this.full = block(`answers-${this.number}`).then(({ answers, evidence }) => {
        this.answers = answers;
        this.haystack = this.haystack.map((text, index) => {
          const own = answers[index].filter((answer) => typeof answer === "string");
          return `${text}\n${own.join("\n")}\n${evidence[index].join("\n")}`.toLowerCase();
        });
      });
    }
    return this.full;
  }

  /** The answer of a run; equal answers are stored once. */
  answer(index, run) {
    const answer = this.answers[index][run];
    return typeof answer === "number" ? this.answers[index][answer] : answer;
  }

  async details(index) {
    const [list] = await Promise.all([
      block(`details-${this.number}-${Math.floor(index / this.detailsPerBlock)}`),
      this.searchText(),
    ]);
    return list[index % this.detailsPerBlock];
  }

  statusOf(index, run) {
    return this.meta.statuses[this.status[run][index]];
  }
}

/** The number of the group that an address names by its key; the first one if it names none. */
async function groupNumber(parameters) {
  const key = parameters.get("g");
  if (!key) return 0;
  const { groups } = await block("meta");
  const number = groups.findIndex((group) => group.key === key);
  if (number < 0) throw new Error("this report has no such runs; it may be of other results than the link");
  return number;
}

const loadedQuestions = new Map();

/** @param {number} number @returns {Promise<Questions>} */
function questionsOf(number) {
  if (!loadedQuestions.has(number)) {
    const loading = Promise.all([block("meta"), block(`questions-${number}`)]);
    loadedQuestions.set(number, loading.then(([meta, columns]) => new Questions(number, meta, columns)));
  }
  return loadedQuestions.get(number);
}
