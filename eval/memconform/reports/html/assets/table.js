/** As in the style sheet, at any size of the reader's font. */
const ROW_HEIGHT = 2.25 * parseFloat(getComputedStyle(document.documentElement).fontSize);
const OVERSCAN = 10;

/** A table of which only the visible rows exist; assistive technology learns the number of all. */
class QuestionTable {
  constructor(host) {
    this.host = host;
    this.body = el("tbody");
    this.head = el("thead");
    this.table = el("table", {}, this.head, this.body);
    host.replaceChildren(this.table);
    host.addEventListener("scroll", () => this.draw(), { passive: true });
    host.addEventListener("keydown", (event) => this.move(event));
    new ResizeObserver(() => this.draw()).observe(host);
  }

  /** Show questions in an order; the scroll position stays if they are the same. */
  show(questions, order, parameters) {
    const same = this.questions === questions && this.order?.length === order.length;
    Object.assign(this, { questions, order, parameters, first: -1, last: -1 });
    this.table.setAttribute("aria-rowcount", String(order.length + 1));
    const sorting = this.head.contains(document.activeElement) ? document.activeElement.dataset.column : null;
    this.head.replaceChildren(this.headRow());
    if (sorting) this.head.querySelector(`[data-column="${sorting}"]`)?.focus({ preventScroll: true });
    if (!same) this.host.scrollTop = 0;
    this.draw();
  }

  columns() {
    const several = this.questions.runs.length > 1;
    return [
      ["id", "Id", "c-id"],
      ["question", "Question", "c-question"],
      ...this.questions.runs.map((run, index) => [`status:${index}`, run.name, "c-status"]),
      ...(several ? [["stage", "Differs at", "c-stage"]] : []),
      ...this.questions.runs.map((run, index) => [`ms:${index}`, `${run.name} ms`, "c-ms"]),
    ];
  }

  headRow() {
    const sort = this.parameters.get("sort");
    const isDown = this.parameters.get("dir") === "desc";
    return el(
      "tr",
      { "aria-rowindex": "1" },
      ...this.columns().map(([name, label, style]) => {
        const direction = name !== sort ? null : isDown ? "descending" : "ascending";
        const arrow = direction === null ? "" : isDown ? " ↓" : " ↑";
        const button = el("button", { type: "button", "data-column": name, onclick: () => this.sortBy(name) }, `${label}${arrow}`);
        return el("th", { scope: "col", class: style || null, "aria-sort": direction }, button);
      }),
    );
  }

  sortBy(name) {
    const values = Object.fromEntries(this.parameters);
    const again = values.sort === name;
    const next = again && values.dir === "desc" ? { sort: "", dir: "" } : { sort: name, dir: again ? "desc" : "" };
    location.hash = address("questions", { ...values, ...next });
  }

  draw() {
    if (!this.order) return;
    const top = Math.max(0, this.host.scrollTop - this.head.offsetHeight);
    const first = Math.max(0, Math.floor(top / ROW_HEIGHT) - OVERSCAN);
    const height = this.host.clientHeight || 600;
    const last = Math.min(this.order.length, first + Math.ceil(height / ROW_HEIGHT) + 2 * OVERSCAN);
    if (first === this.first && last === this.last) return;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.dataset.row : null;
    [this.first, this.last] = [first, last];
    const rows = [];
    for (let row = first; row < last; row += 1) rows.push(this.row(row));
    if (this.order.length === 0) rows.push(el("tr", {}, el("td", { colspan: this.columns().length }, "No question matches these filters.")));
    this.body.replaceChildren(this.space(first), ...rows, this.space(this.order.length - last));
    if (focused) this.body.querySelector(`[data-row="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** Every row, for paper. */
  drawAll() {
    this.body.replaceChildren(...this.order.map((_, row) => this.row(row)));
    [this.first, this.last] = [-1, -1];
  }

  space(rows) {
    const cell = el("td", { colspan: this.columns().length });
    cell.style.height = `${rows * ROW_HEIGHT}px`;
    return el("tr", { class: "space", "aria-hidden": "true" }, cell);
  }

  row(row) {
    const { questions } = this;
    const at = this.order[row];
    const parameters = { ...Object.fromEntries(this.parameters), g: questions.group.key, id: questions.ids[at] };
    const link = el("a", { href: address("question", parameters), "data-row": row }, questions.ids[at] || "(empty)");
    const stage = questions.stages[at].map((code) => questions.meta.stages[code]).join(", ");
    return el(
      "tr",
      { class: "row", "aria-rowindex": row + 2 },
      el("th", { scope: "row", title: questions.ids[at] }, link),
      el("td", { title: questions.texts[at].slice(0, 500) }, questions.texts[at].slice(0, 300).replace(/\s+/g, " ")),
      ...questions.runs.map((_, run) => {
        const mark = badge(questions.statusOf(at, run));
        if (questions.outliers[at] === run) mark.classList.add("odd");
        if (questions.regressedRuns[run].has(at)) mark.append(" ↓");
        return el("td", {}, mark);
      }),
      ...(questions.runs.length > 1 ? [el("td", {}, stage)] : []),
      ...questions.runs.map((_, run) => el("td", { class: "number" }, questions.latency[run][at]?.toFixed(1) ?? "-")),
    );
  }

  /** Arrow keys, Page Up and Down, Home and End move between the links of rows. */
  move(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined || !this.order?.length || event.ctrlKey || event.metaKey || event.altKey) return;
    const current = this.body.contains(document.activeElement) ? Number(document.activeElement.dataset.row) : -1;
    const next = Math.min(this.order.length - 1, Math.max(0, current + step));
    event.preventDefault();
    const top = next * ROW_HEIGHT;
    const height = this.host.clientHeight - this.head.offsetHeight - ROW_HEIGHT;
    if (top < this.host.scrollTop) this.host.scrollTop = top;
    if (top > this.host.scrollTop + height) this.host.scrollTop = top - height;
    this.draw();
    this.body.querySelector(`[data-row="${next}"]`)?.focus({ preventScroll: true });
  }
}
