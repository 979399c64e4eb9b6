// The list of runs, the open questions, and the form that starts a run.

import { get, post } from "./api.js";
import { chatButtons } from "./chat.js";
import { ago, bdi, bold, button, clicks, code, compact, count, dialog, duration, empty, failure, field, fill, h, heads, hint, labelChip, loading, money, muted, plural, short, statusChip, statusWord, toast, told } from "./dom.js";
import { showQuestions } from "./question.js";
import { stopUnseen } from "./steer.js";

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

// whose says of which spec a run is, unless it has the name of that, and who started or submitted it.
function whose({ name, spec, starter, queue }) {
  const by = starter || queue?.by;
  return (by || spec && spec !== name) && h("div", { class: "c-about muted" }, spec && spec !== name && ["of ", bdi(spec), " "], by && [starter ? "by " : "submitted by ", bdi(by)]);
}

// queued says which worker a submitted run is for, and when it is due.
export function queued({ status, startedAt, queue }) {
  if (status !== "queued" || !queue) return null;
  const later = Date.parse(queue.due) > Date.parse(startedAt) + 1000;
  return h("div", { class: "c-about muted" }, "for a worker of ", bdi(queue.spec), later && [", from ", h("time", { datetime: queue.due }, new Date(queue.due).toISOString().slice(0, 16).replace("T", " ") + " UTC")], queue.unserved && [" ", h("span", { class: "tag warn" }, "no worker serves it")]);
}

// runStatuses and ages are what the list can be limited to.
const runStatuses = ["ok", "error", "running", "paused", "interrupted", "suspended", "queued", "set aside", "cancelled", "timeout", "budget_exhausted"];

const ages = [["", "any time"], ["1h", "last hour"], ["24h", "last day"], ["7d", "last 7 days"], ["30d", "last 30 days"]];

// A Filter is the form that limits the list. Its fields have the names that the API and the command have.
class Filter {
  constructor(onchange) {
    this.fields = new Map();
    const add = (name, el) => { this.fields.set(name, el); return el; }, changed = () => { clearTimeout(this.wait); this.wait = setTimeout(onchange, 250); };
    const select = (name, title, options) => h("select", { id: "runs-" + name, "aria-label": title }, options.map(([value, text]) => h("option", { value }, text)));
    const amount = (name, title, hint) => add(name, h("input", { type: "number", class: "amount", min: 0, step: "any", "aria-label": title, placeholder: hint }));
    this.specs = h("datalist", { id: "runs-specs" });
    this.starters = h("datalist", { id: "runs-starters" });
    this.starter = h("input", { type: "text", class: "spec", list: "runs-starters", "aria-label": "Started by", placeholder: "by anyone", autocomplete: "off", hidden: true }); // until a person is known
    this.clear = button("Clear", () => { this.set(new URLSearchParams()); onchange(); }, { class: "small" });
    this.el = h("form", { class: "toolbar runs-filter", role: "search", "aria-label": "Filter runs", oninput: changed, onsubmit: (e) => e.preventDefault() },
      add("search", h("input", { type: "search", "aria-label": "Search runs", placeholder: "Search name, ID, session or spec" })),
      add("status", select("status", "Status", [["", "any status"], ...runStatuses.map((x) => [x, statusWord(x)])])),
      add("spec", h("input", { type: "text", class: "spec", list: "runs-specs", "aria-label": "Spec", placeholder: "any spec", autocomplete: "off" })), this.specs,
      add("starter", this.starter), this.starters,
      add("since", select("since", "Began", ages)),
      h("span", { class: "amounts" }, amount("min-cost", "Cost from, in dollars", "$ from"), "–", amount("max-cost", "Cost to, in dollars", "$ to")), this.clear);
    this.clear.hidden = true;
  }

  // set fills the fields in.
  set(query) {
    for (const [name, el] of this.fields) {
      const value = query.get(name) ?? "";
      if (el.tagName === "SELECT" && ![...el.options].some((o) => o.value === value)) el.append(h("option", { value }, value));
      el.value = value;
    }
    this.starter.hidden &&= this.starter.value === "";
    this.clear.hidden = this.query.size === 0;
  }

  get query() {
    const query = new URLSearchParams();
    for (const [name, el] of this.fields) if (el.value.trim() !== "") query.set(name, el.value.trim());
    this.clear.hidden = query.size === 0;
    return query;
  }

  // offer adds the names of specs and people to choose from.
  offer(runs) {
    const add = (list, names) => {
      const all = [...new Set(names.filter(Boolean))].sort().slice(0, 200);
      if (all.join("\n") !== [...list.options].map((o) => o.value).join("\n")) fill(list, all.map((value) => h("option", { value })));
    };
    add(this.specs, runs.map((r) => r.name));
    add(this.starters, runs.map((r) => r.starter));
    this.starter.hidden &&= this.starters.options.length === 0;
  }
}

export class RunsPage {
  constructor(app) {
    this.app = app;
    app.title("Runs");
    fill(app.crumbs, h("span", { "aria-current": "page" }, "Runs"));
    if (app.viewer.canStart) this.offer();
    this.questions = h("section", { class: "questions", "aria-label": "Open questions" });
    this.filter = new Filter(() => this.filtered());
    this.list = h("div", { class: "runs" }, loading("the runs"));
    this.unseen = h("section", { class: "runs", "aria-label": "Runs that you may not see" });
    this.rows = new Map();
    clicks(this.list, (e) => {
      const id = e.target.closest("tr")?.dataset.id;
      if (id && !(e.type && e.target.closest("a"))) app.go("#/runs/" + id);
    });
    this.el = h("div", { class: "page" }, h("h1", { class: "sr" }, "Runs"), this.questions, this.filter.el, this.list, this.unseen);
    this.older = [];
    let second = 0;
    this.timer = setInterval(() => {
      if (document.hidden) return;
      if (++second % 4 === 0) this.load(true);
      else for (const r of this.runs ?? []) if (r.live && this.rows.has(r.runId)) this.refresh(r); // its time
    }, 1000);
  }

  close() { clearInterval(this.timer); }

  go(_, query) {
    this.filter.set(query);
    this.begin();
  }

  press(e) {
    if (e.key !== "/") return false;
    this.filter.fields.get("search").focus();
    return true;
  }

  // filtered shows what fits the filter now. The address has it, so that it can be kept and sent.
  filtered() {
    history.replaceState(null, "", "#/runs" + (this.filter.query.size > 0 ? "?" + this.filter.query : ""));
    this.begin();
  }

  begin() {
    this.older = [];
    this.next = this.key = undefined;
    this.load();
  }

  // page reads runs from behind a run on. The server may return none after some time, and where to go on.
  async page(before) {
    const query = this.filter.query, asked = query.toString();
    query.set("limit", 100);
    if (before) query.set("before", before);
    const doc = await get("/runs?" + query);
    return asked === this.filter.query.toString() && this.app.page === this ? doc : null;
  }

  async load(again) {
    try {
      const [doc, open, unseen] = await Promise.all([this.page(), get("/questions"), this.app.viewer.canStopUnseen ? get("/unseen-runs") : []]);
      if (!doc) return;
      this.showUnseen(unseen);
      this.asked = open;
      showQuestions(this.app, this.questions, open, true);
      const last = doc.next && doc.runs.at(-1); // behind which are those that new runs have moved out of the first page
      if (this.older.length === 0) this.next = doc.next;
      else if (last) this.older.unshift(...this.runs.filter((r) => !r.live && r.startedAt < last.startedAt));
      this.runs = doc.runs;
      this.filter.offer(doc.runs);
      this.show();
      if (doc.runs.length === 0 && this.next && !this.searching) this.loadMore();
    } catch (err) {
      if (again && err.status !== 401) return;
      this.key = undefined;
      fill(this.list, failure(err, () => this.load()));
    }
  }

  show() {
    const first = new Set(this.runs.map((r) => r.runId)), all = [...this.runs, ...this.older.filter((r) => !first.has(r.runId))];
    if (all.length === 0) {
      this.key = undefined;
      if (this.searching || this.next) return fill(this.list, loading("older runs"));
      if (this.filter.query.size > 0) return fill(this.list, empty("No run fits", button("Show all runs", () => this.filter.clear.click(), { class: "link" })));
      fill(this.list, empty("No runs yet", "“runteam run” writes each run into the journal, and it appears here. Try an example that needs no key: ", h("code", null, "runteam init && runteam run --offline")));
      return;
    }
    const live = all.filter((r) => r.live), rest = all.filter((r) => !r.live);
    const key = [live, rest].map((list) => list.map((r) => r.runId).join()).join("/") + this.next;
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
      this.next && button("Show older runs", () => this.loadMore(), { class: "more" }));
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

  // showUnseen shows the runs that the viewer may stop without seeing them.
  showUnseen(list) {
    const key = list.map((r) => r.runId).join();
    if (key === (this.unseenKey ?? "")) return; // somebody may be pressing a button
    this.unseenKey = key;
    const act = (r, kind, title) => button(title, () => stopUnseen(r, kind), { class: kind === "cancel" ? "small danger" : "small", "aria-label": title + " " + short(r.runId) });
    fill(this.unseen, list.length > 0 && h("table", { class: "grid unseen" }, h("caption", null, "Runs that you may not see ", muted(count(list.length))),
      heads(["Run", "Spec", "Started by", "Stop"], [3]),
      h("tbody", null, list.map((r) => h("tr", null, h("td", { class: "mono" }, short(r.runId)), h("td", null, bdi(r.spec)), h("td", null, bdi(r.starter)),
        h("td", { class: "right" }, act(r, "pause", "Pause"), " ", act(r, "cancel", "Cancel")))))));
  }

  // loadMore reads on until it has found runs, or there are no more.
  async loadMore() {
    if (this.searching) return;
    this.searching = true;
    try {
      for (let found = 0; found === 0 && this.next;) {
        const doc = await this.page(this.next);
        if (!doc) return;
        found = doc.runs.length;
        this.older.push(...doc.runs);
        this.next = doc.next;
      }
    } finally {
      this.searching = false;
    }
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
        " ", r.experiment && h("span", { class: "tag" }, "experiment"), " ", r.session && h("a", { class: "tag", href: "#/chats/" + encodeURIComponent(r.session), title: "Open the chat" }, "turn ", r.turn), " ", r.questions > 0 && h("span", { class: "tag warn" }, plural(r.questions, "question")), whose(r), queued(r)),
      h("td", null, statusChip(r.status)),
      h("td", { class: "c-when" }, h("time", { datetime: r.startedAt, title: r.startedAt }, ago(r.startedAt))),
      h("td", { class: "c-took right num" }, took),
      h("td", null, progress(countsOf(r, new Set(this.asked.filter((q) => q.runId === r.runId).map((q) => q.task)).size))),
      h("td", { class: "c-tokens right num", title: r.tokens && count(r.tokens.input) + " in, " + count(r.tokens.output) + " out" }, tokens ? compact(tokens) : none(), h("span", { class: "unit" }, " tokens"), r.partial && muted(" partial")),
      h("td", { class: "c-cost right num" }, money(r.cost) || muted(none())),
      h("td", { class: "c-withheld right num" }, r.withheld > 0 ? count(r.withheld) : muted(none()), h("span", { class: "unit" }, " withheld")));
  }

  // offer shows what can be begun with the served specs.
  async offer() {
    const specs = await get("/specs").catch(() => []);
    if (this.app.page === this) fill(this.app.actions, chatButtons(this.app, specs), button("Start a run", () => this.startForm(), { class: "primary" }));
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
    this.estimated = h("div", { class: "estimate", role: "status", "aria-label": "What the run may cost" });
    fill(el, h("form", { class: "form", oninput: () => this.estimate(600), onsubmit: (e) => { e.preventDefault(); this.start(); } },
      field("start-spec", "Spec", this.pick), this.fields, field("start-reason", "Why? (kept with the run)", this.reason), this.estimated, this.problems,
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
    this.estimate(0);
  }

  // estimate asks what the run would call and cost with what the form has, some time after the last key.
  estimate(after) {
    clearTimeout(this.wait);
    this.wait = setTimeout(async () => {
      const asked = this.asked = {};
      let shown;
      try { shown = estimateText(await post("/estimates", this.body())); } catch (err) { shown = hint("What the run may cost is not known yet: ", bdi(err.message)); }
      if (asked === this.asked) fill(this.estimated, shown);
    }, after);
  }

  area(id, title, input, into) {
    const el = h("textarea", { id, rows: 3, required: !input?.hasDefault && Boolean(into), placeholder: input?.hasDefault ? "as in the spec" : "" });
    if (into) into.set(input.name, el);
    else this.goal = el;
    return field(id, [title, " ", input && labelChip(input.classification)], el);
  }

  // body is what starts the run.
  body() {
    const filled = (m) => Object.fromEntries([...m].filter(([, el]) => el.value !== "").map(([k, el]) => [k, el.value]));
    const body = { spec: this.spec.name, inputs: filled(this.inputs), params: filled(this.params), reason: this.reason.value };
    if (this.spec.goal && this.goal?.value) body.goal = this.goal.value;
    return body;
  }

  async start() {
    try {
      const { runId } = await post("/runs", this.body());
      this.dialog.close();
      toast("The run has started");
      this.app.go("#/runs/" + runId);
    } catch (err) {
      fill(this.problems, told(err));
    }
  }
}

// estimateText says which models a run calls, whether they cost money, and how much at most.
function estimateText({ scripted, models, atMost, costBudget, missing, problem }) {
  const names = (list) => list.map((x, i) => [i ? ", " : "", bold(x)]), line = (...text) => h("p", null, text);
  if (problem) return hint("What the run may cost is not known yet: ", bdi(problem));
  if (scripted) return line("No model is called: a script answers, so the run costs nothing.");
  if (models.length === 0) return line("No model is called.");
  const paid = models.filter((m) => !m.local && !m.free), most = atMost?.cost !== undefined ? money(atMost.cost) : costBudget > 0 ? money(costBudget) : "";
  const unknown = [...new Set(paid.filter((m) => !m.priced).map((m) => m.model || "a model without a name"))];
  return [
    line(paid.length > 0 ? "Calls a paid model: " : "Calls no paid model: ", models.map((m, i) => [i ? ", " : "", bold(m.model || "a model without a name"), m.local ? " on this computer" : [" at ", bdi(hostOf(m.endpoint))], m.free && !m.local && ", which is free"]), "."),
    paid.length > 0 && unknown.length > 0 && line("Price unknown: the spec has none under ", code("prices"), " for ", names(unknown), "."),
    paid.length > 0 && most !== "" && line("Costs at most ", !atMost?.costBudget && atMost && "about ", h("b", { class: "num" }, most), atMost?.costBudget || !atMost ? ", its budget" : [" by the plan, for at most ", plural(atMost.calls, "call")], "."),
    paid.length > 0 && unknown.length === 0 && most === "" && line("There is no highest cost: ", atMost?.unboundedAnswers?.length > 0 ? ["answers of ", names(atMost.unboundedAnswers), " have no ", code("maxTokens"), "."] : "the coordinator has to plan the tasks first.", " ", code("maxCostBudget"), " would bound it."),
    paid.length > 0 && most !== "" && !atMost?.costBudget && atMost?.notCounted?.length > 0 && line("Not counted: calls of ", names(atMost.notCounted), "."),
    missing.length > 0 && hint("Without the inputs that are missing: ", missing.map((x, i) => [i ? ", " : "", bdi(x)]), "."),
  ];
}

function hostOf(url) { try { return new URL(url).host; } catch { return url; } }
