// The list of runs, the open questions, and the form that starts a run.

import { get, post } from "./api.js";
import { ago, bdi, button, clicks, compact, count, dialog, duration, empty, failure, field, fill, h, heads, labelChip, loading, money, muted, plural, short, statusChip, statusWord, toast, told } from "./dom.js";
import { showQuestions } from "./question.js";

const open = ["in_progress", "ready", "waiting", "blocked", "pending"];
const statuses = ["completed", ...open.slice(0, 3), "failed", "accepted", "interrupted", "cancelled", "skipped", "not_needed", ...open.slice(3)];

// countsOf counts the tasks of a listed run as the command does: those that ended by their outcome. So many have a question.
function countsOf({ tasks = {}, outcomes: { notRun = 0, notNeeded = 0, failed = 0, failureAccepted: accepted = 0, ...o } = {} }, asked) {
  const counts = { ...o, failed: failed - accepted, accepted, skipped: notRun, not_needed: notNeeded };
  for (const st of open) counts[st] = tasks[st] ?? 0;
  const waits = Math.min(counts.in_progress, asked - counts.waiting); // of which no event says so
  if (waits > 0) {
    counts.in_progress -= waits;
    counts.waiting += waits;
  }
  return counts;
}

// progress draws how many tasks are in which state.
export function progress(counts) {
  const all = Object.values(counts ?? {}).reduce((a, b) => a + b, 0);
  if (!all) return muted("–");
  const shown = statuses.filter((st) => counts[st] > 0);
  const text = shown.map((st) => count(counts[st]) + " " + statusWord(st)).join(", ");
  return h("span", { class: "progress", title: text },
    h("span", { class: "progress-bar", "aria-hidden": "true" }, shown.map((st) => h("i", { class: "p-" + st, style: { "flex-grow": counts[st] } }))),
    h("span", { class: "num" }, count(counts.completed ?? 0) + "/" + count(all)), h("span", { class: "sr" }, text));
}

export class RunsPage {
  constructor(app) {
    this.app = app;
    app.title("Runs");
    fill(app.crumbs, h("span", { "aria-current": "page" }, "Runs"));
    if (app.viewer.canStart && app.canWrite()) fill(app.actions, button("Start a run", () => this.startForm(), { class: "primary" }));
    this.questions = h("section", { class: "questions", "aria-label": "Open questions" });
    this.list = h("div", { class: "runs" }, loading("the runs"));
    this.rows = new Map();
    clicks(this.list, (e) => {
      const id = e.target.closest("tr")?.dataset.id;
      if (id && !(e.type && e.target.closest("a"))) app.go("#/runs/" + id);
    });
    this.el = h("div", { class: "page" }, h("h1", { class: "sr" }, "Runs"), this.questions, this.list);
    this.more = [];
    this.load();
    let second = 0;
    this.timer = setInterval(() => {
      if (document.hidden) return;
      if (++second % 4 === 0) this.load(true);
      else for (const r of this.runs ?? []) if (r.live && this.rows.has(r.runId)) this.refresh(r); // its time
    }, 1000);
  }

  close() { clearInterval(this.timer); }

  async load(again) {
    try {
      const [{ runs, more }, open] = await Promise.all([get("/runs?limit=100"), get("/questions")]);
      if (this.app.page !== this) return;
      this.asked = open;
      showQuestions(this.app, this.questions, open, true);
      this.runs = runs;
      this.hasMore = more && this.more.length === 0 || this.hasMore;
      this.show();
    } catch (err) {
      if (again && err.status !== 401) return;
      this.key = undefined;
      fill(this.list, failure(err, () => this.load()));
    }
  }

  show() {
    const first = new Set(this.runs.map((r) => r.runId)), all = [...this.runs, ...this.more.filter((r) => !first.has(r.runId))];
    if (all.length === 0) {
      fill(this.list, empty("No runs yet", "“runteam run” writes each run into the journal, and it appears here. Try an example that needs no key: ", h("code", null, "runteam init && runteam run --offline")));
      return;
    }
    const live = all.filter((r) => r.live), rest = all.filter((r) => !r.live);
    const key = [live, rest].map((list) => list.map((r) => r.runId).join()).join("/") + this.hasMore;
    if (key === this.key) {
      for (const r of all) this.refresh(r);
      return;
    }
    this.key = key;
    const focus = document.activeElement?.closest?.("tr")?.dataset.id, known = this.rows;
    this.rows = new Map(all.map((r) => [r.runId, known.get(r.runId) ?? this.row(r)]));
    for (const r of all) this.refresh(r);
    fill(this.list,
      live.length > 0 && this.table("Live", live),
      rest.length > 0 && this.table(live.length > 0 ? "Earlier" : "Runs", rest),
      this.hasMore && button("Show older runs", () => this.loadMore(), { class: "more" }));
    if (focus) this.rows.get(focus)?.querySelector("a").focus({ preventScroll: true });
  }

  // refresh changes the cells of a row that differ, so that nothing else is drawn again under a click.
  refresh(r) {
    const el = this.rows.get(r.runId), now = this.row(r);
    el.className = now.className;
    [...now.children].forEach((cell, i) => {
      const old = el.children[i], focused = old.contains(document.activeElement);
      if (cell.isEqualNode(old)) return;
      old.replaceWith(cell);
      if (focused) cell.querySelector("a")?.focus({ preventScroll: true });
    });
  }

  async loadMore() {
    const all = [...this.runs, ...this.more];
    const { runs, more } = await get("/runs?limit=100&before=" + encodeURIComponent(all.at(-1).runId));
    this.more.push(...runs);
    this.hasMore = more;
    this.show();
  }

  table(caption, runs) {
    return h("table", { class: "grid" }, h("caption", null, caption, muted(" " + count(runs.length))),
      heads(["Run", "Status", "Started", "Took", "Tasks", "Tokens", "Cost", "Withheld"], [3, 5, 6, 7]),
      h("tbody", null, runs.map((r) => this.rows.get(r.runId))));
  }

  row(r) {
    const took = r.endedAt ? duration(r.tookMs ?? 0) : r.live ? duration(Date.now() - Date.parse(r.startedAt)) : "";
    const none = () => r.counted ? "–" : h("span", { title: "not counted yet" }, "…");
    const tokens = r.tokens ? r.tokens.input + r.tokens.output : 0;
    return h("tr", { class: r.live ? "live-row" : "", data: { id: r.runId } },
      h("td", { class: "c-name" }, h("a", { href: "#/runs/" + encodeURIComponent(r.runId) }, bdi(r.name || "unnamed")), " ", h("span", { class: "mono muted" }, short(r.runId)),
        " ", r.experiment && h("span", { class: "tag" }, "experiment"), " ", r.questions > 0 && h("span", { class: "tag warn" }, plural(r.questions, "question"))),
      h("td", null, statusChip(r.status)),
      h("td", { class: "c-when" }, h("time", { datetime: r.startedAt, title: r.startedAt }, ago(r.startedAt))),
      h("td", { class: "c-took right num" }, took),
      h("td", null, progress(countsOf(r, new Set(this.asked.filter((q) => q.runId === r.runId).map((q) => q.task)).size))),
      h("td", { class: "c-tokens right num", title: r.tokens && count(r.tokens.input) + " in, " + count(r.tokens.output) + " out" }, tokens ? compact(tokens) : none(), h("span", { class: "unit" }, " tokens")),
      h("td", { class: "c-cost right num" }, money(r.cost) || muted(none())),
      h("td", { class: "c-withheld right num" }, r.withheld > 0 ? count(r.withheld) : muted(none()), h("span", { class: "unit" }, " withheld")));
  }

  async startForm() {
    const body = h("div", { class: "pad" }, loading("the specs"));
    const d = dialog("Start a run", body);
    try {
      const specs = await get("/specs");
      if (specs.length === 0) fill(body, empty("No spec is served", "Start the server with the specs that may be run: ", h("code", null, "runteam serve team.yaml")));
      else new StartForm(this.app, specs, body, d);
    } catch (err) {
      fill(body, failure(err));
    }
  }
}

class StartForm {
  constructor(app, specs, el, d) {
    Object.assign(this, { app, specs, dialog: d });
    this.pick = h("select", { id: "start-spec", onchange: () => this.show() }, specs.map((x) => h("option", { value: x.name }, x.name + (x.path ? "  ·  " + x.path : ""))));
    this.fields = h("div");
    this.reason = h("input", { id: "start-reason", type: "text", autocomplete: "off" });
    this.problems = h("div", { role: "alert" });
    fill(el, h("form", { class: "form", onsubmit: (e) => { e.preventDefault(); this.start(); } },
      field("start-spec", "Spec", this.pick), this.fields, field("start-reason", "Why? (kept with the run)", this.reason), this.problems,
      h("footer", null, h("button", { type: "submit", class: "primary" }, "Start"))));
    this.show();
    this.pick.focus();
  }

  show() {
    const spec = this.specs.find((x) => x.name === this.pick.value) ?? this.specs[0];
    this.spec = spec;
    this.inputs = new Map();
    this.params = new Map();
    fill(this.fields,
      spec.goal && this.area("goal", "Goal", null),
      (spec.inputs ?? []).map((x) => this.area("in-" + x.name, "Input " + x.name, x, this.inputs)),
      (spec.params ?? []).map((x) => {
        const input = h("input", { id: "par-" + x.name, type: "text", required: !x.hasDefault, placeholder: x.hasDefault ? "as in the spec" : "" });
        this.params.set(x.name, input);
        return field("par-" + x.name, "Parameter " + x.name, input);
      }));
  }

  area(id, title, input, into) {
    const el = h("textarea", { id, rows: 3, required: !input?.hasDefault && Boolean(into), placeholder: input?.hasDefault ? "as in the spec" : "" });
    if (into) into.set(input.name, el);
    else this.goal = el;
    return field(id, [title, " ", input && labelChip(input.classification)], el);
  }

  async start() {
    const filled = (m) => Object.fromEntries([...m].filter(([, el]) => el.value !== "").map(([k, el]) => [k, el.value]));
    const body = { spec: this.spec.name, inputs: filled(this.inputs), params: filled(this.params), reason: this.reason.value };
    if (this.spec.goal && this.goal?.value) body.goal = this.goal.value;
    try {
      const { runId } = await post("/runs", body);
      this.dialog.close();
      toast("The run has started");
      this.app.go("#/runs/" + runId);
    } catch (err) {
      fill(this.problems, told(err));
    }
  }
}

