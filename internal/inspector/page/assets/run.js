// One run: its summary, its views, and the panel of a task or of an edge.

import { downloadURL, exported, get, ofRun, path } from "./api.js";
import { bdi, button, change, compact, count, duration, failure, fill, h, loading, money, muted, s, short, statusChip, toast, visible } from "./dom.js";
import { AnswerView, EventsView } from "./answer.js";
import { CompareView } from "./compare.js";
import { EdgePanel } from "./edge.js";
import { FlowView } from "./flow.js";
import { GraphView } from "./graph.js";
import { PolicyView } from "./policy.js";
import { showQuestions } from "./question.js";
import { progress, queued } from "./runs.js";
import { RunState } from "./state.js";
import { steer } from "./steer.js";
import { TasksView } from "./table.js";
import { TaskPanel } from "./task.js";
import { howToFollow } from "./text.js";
import { TimelineView } from "./timeline.js";

const views = [
  ["graph", "Graph", GraphView], ["timeline", "Timeline", TimelineView], ["list", "Tasks", TasksView], ["answer", "Answer", AnswerView],
  ["flow", "Flow", FlowView], ["policy", "Policy", PolicyView], ["events", "Events", EventsView], ["compare", "Compare", CompareView],
];

export class RunPage {
  constructor(app, id) {
    Object.assign(this, { app, id, lastTab: "prompt" });
    this.state = new RunState(id);
    this.full = app.store.get("full") === "1";
    this.body = h("div", { class: "run-body" }, loading("the run"));
    this.el = h("div", { class: "run" }, this.body);
    app.title("Run " + short(id));
    this.ready = this.load();
  }

  close() {
    this.state.stop();
    this.view?.close?.();
    this.panel?.close?.();
    clearInterval(this.clock);
  }

  async load() {
    try {
      await this.state.load();
    } catch (err) {
      fill(this.body, h("div", { class: "pad" }, h("h1", null, "Run ", short(this.id)), failure(err, () => { this.ready = this.load().then(() => this.go(...this.asked)); }), h("p", null, h("a", { href: "#/runs" }, "All runs"))));
      return false;
    }
    if (this.app.page !== this) return false;
    const { doc } = this.state;
    this.app.title(doc.name || "Run " + short(this.id));
    fill(this.app.crumbs, exported ? h("span", null, "exported run") : h("a", { href: "#/runs" }, "Runs"), h("span", { class: "sep", "aria-hidden": "true" }, "/"),
      h("a", { href: "#/runs/" + encodeURIComponent(this.id) }, bdi(doc.name || "unnamed"), " ", h("span", { class: "mono muted" }, short(this.id))));
    this.frame();
    this.state.listen((changed, whole) => this.update(changed, whole));
    if (this.state.live) this.state.start();
    this.clock = setInterval(() => this.tick(), 1000);
    this.usage();
    this.questions();
    if (!this.state.live && this.state.order.length <= 300) setTimeout(() => this.state.readEvents().catch(() => {}).finally(() => this.tick()), 300); // the marks of edges
    this.tick();
    return true;
  }

  frame() {
    this.stats = h("dl", { class: "stats" });
    this.status = h("span");
    this.commands = h("div", { class: "commands" });
    this.trouble = h("div", { class: "trouble" });
    this.open = h("div", { class: "questions" });
    this.tabs = h("nav", { class: "tabs", "aria-label": "Views of the run" }, views.map(([key, title], i) =>
      h("a", { href: this.link(key), data: { key }, title: title + " (" + (i + 1) + ")" }, title)));
    this.main = h("section", { class: "view", "aria-label": "View" });
    this.aside = h("aside", { class: "panel", "aria-label": "Details", hidden: true });
    this.grip = h("div", { class: "grip", role: "separator", "aria-label": "Width of the details", "aria-orientation": "vertical", "aria-valuemin": 30, "aria-valuemax": 75, "aria-valuenow": 55, tabindex: "0", hidden: true });
    this.dragging();
    this.split = h("div", { class: "split" }, this.main, this.grip, this.aside);
    const { doc } = this.state;
    fill(this.body,
      h("header", { class: "summary" },
        h("div", { class: "summary-title" }, h("h1", null, bdi(doc.name || "Run " + short(this.id))), this.status, doc.replayed && h("span", { class: "tag" }, "repeats ", short(doc.replayed)), doc.queue && muted("submitted by ", bdi(doc.queue.by)), this.commands, queued(doc)),
        this.stats),
      this.trouble, this.open, this.tabs, this.split);
    this.summary();
  }

  link(key) { return "#/runs/" + encodeURIComponent(this.id) + (key === "graph" ? "" : "/" + key); }

  taskLink(id, query) { return "#/runs" + path(this.id, "tasks", id) + (query ? "?" + new URLSearchParams(query) : ""); }

  edgeLink(from, to) { return "#/runs" + path(this.id, "edges", from, to); }

  stat(key, title, el) {
    this.cells ??= {};
    this.cells[key] = el;
    return h("div", { class: "stat stat-" + key }, h("dt", null, title), h("dd", null, el));
  }

  // summary draws the head of the run; tick only changes its numbers.
  summary() {
    const { state } = this, { doc } = state;
    fill(this.status, statusChip(state.status), state.live && h("span", { class: "live", title: "live: " + state.connection }, { lost: "reconnecting", refused: "not connected" }[state.connection] ?? "live"));
    fill(this.trouble, state.connection === "refused" && failure(state.refusal, () => location.reload()));
    this.spark = s("svg", { class: "spark", viewBox: "0 0 100 24", preserveAspectRatio: "none", "aria-hidden": "true" }, s("path", { class: "area" }), s("path", { class: "line" }));
    fill(this.stats,
      this.stat("took", "Took", h("span", { class: "num" })),
      this.stat("tasks", "Tasks", h("span")),
      this.stat("tokens", "Tokens", h("span", { class: "num" })),
      this.stat("cost", "Cost", h("span", { class: "num" })),
      this.stat("withheld", "Withheld", h("span", { class: "num" }, exported && "marked at each task")),
      h("div", { class: "stat stat-spark" }, h("dt", null, "Tokens over time"), h("dd", null, this.spark)));
    const live = state.live && this.app.viewer.canSteer;
    fill(this.commands,
      live && button(state.paused ? "Resume" : "Pause", () => this.pause(), { class: "small" }),
      live && button("Message", () => steer(this, "message"), { class: "small" }),
      live && button("Cancel", () => steer(this, "cancel"), { class: "small danger" }),
      !state.live && state.status !== "ok" && doc.command && this.app.viewer.canSteer && button("Resume", () => steer(this, "restart"), { class: "small" }),
      !exported && h("a", { class: "button small", href: downloadURL(ofRun(this, "export")), download: "" }, "Export"));
    if (doc.spec) this.stats.title = "spec: " + visible(doc.spec);
    this.tick();
  }

  tick() {
    const { state, cells } = this;
    if (!cells) return;
    const { doc } = state, end = doc.endedAt ? Date.parse(doc.endedAt) : Date.now();
    change(cells.took, state.live || doc.endedAt ? duration(doc.tookMs ?? end - Date.parse(doc.startedAt)) : "–");
    fill(cells.tasks, progress(state.counts));
    const all = state.total.input + state.total.output, budget = state.usage?.budget;
    change(cells.tokens, compact(all) + (budget?.tokens ? " of " + compact(budget.tokens) : ""));
    cells.tokens.title = count(state.total.input) + " in, " + count(state.total.output) + " out";
    change(cells.cost, (money(state.cost()) || "–") + (budget?.cost ? " of " + money(budget.cost) : ""));
    const { withheld, redacted } = state.live ? state : doc, held = [withheld && count(withheld), redacted && count(redacted) + " redacted"].filter(Boolean);
    if (!exported) change(cells.withheld, held.join(" · ") || (state.live && !state.events.length ? "…" : "nothing"));
    this.drawSpark(end, all);
    this.view?.tick?.();
    this.panel?.tick?.();
  }

  drawSpark(end, all) {
    const { state } = this, t0 = Date.parse(state.doc.startedAt), span = Math.max(1, end - t0);
    let sum = 0;
    const points = state.order.concat(state.steps).filter((t) => t.endedAt && t.tokenUsage).map((t) => [Date.parse(t.endedAt), (t.tokenUsage.input_tokens ?? 0) + (t.tokenUsage.output_tokens ?? 0)]).sort((a, b) => a[0] - b[0]);
    const most = Math.max(1, all);
    let d = "M0 23", last = 0;
    const every = Math.ceil(points.length / 200);
    points.forEach(([at, n], i) => {
      sum += n;
      if (i % every && i !== points.length - 1) return;
      last = Math.min(100, (at - t0) / span * 100);
      d += `H${last.toFixed(1)}V${(23 - 21 * Math.min(1, sum / most)).toFixed(1)}`;
    });
    d += "H100";
    this.spark.children[1].setAttribute("d", d);
    this.spark.children[0].setAttribute("d", d + "V24H0Z");
  }

  update(changed, whole) {
    if (whole) this.summary();
    else this.dirty = true;
    if (changed.size > 0 || whole) {
      this.view?.update?.(changed, whole);
      this.panel?.update?.(changed, whole);
    }
    const key = this.state.status + this.state.live;
    if (key !== this.statusKey) {
      this.statusKey = key;
      this.summary();
    } else if (!this.ticking) {
      this.ticking = setTimeout(() => { this.ticking = 0; this.tick(); }, 200);
    }
    if (this.state.live && changed.size > 0 || this.wasLive && !this.state.live) this.later();
    this.wasLive = this.state.live;
  }

  // later reads what is not in events: costs and open questions, at most every three seconds.
  later() {
    this.reading ??= setTimeout(() => {
      this.reading = undefined;
      this.read = Date.now();
      if (this.app.page !== this) return;
      this.usage();
      this.questions();
    }, this.state.live ? Math.max(300, 3000 - (Date.now() - (this.read ?? 0))) : 100);
  }

  async usage() {
    try {
      await this.state.loadUsage();
      this.tick();
      this.view?.update?.(new Set(), true);
    } catch { /* the run shows its tokens without it */ }
  }

  async questions() {
    if (exported) return;
    try {
      const list = await get(ofRun(this, "questions"));
      showQuestions(this.app, this.open, list);
      this.state.asked(list);
      this.panel?.update?.(new Set(this.state.tasks.keys()));
    } catch { /* the list of runs shows them, too */ }
  }

  // question returns the card of the question of a task.
  question(task) { return [...this.open.children].find((card) => card.dataset.task === task); }

  // answer leads to the question of a task, which a narrow page shows without the panel.
  answer(task) {
    this.asking = task;
    if (this.open.getClientRects().length > 0) this.showQuestion();
    else this.back(); // and go shows it
  }

  showQuestion() {
    const card = this.question(this.asking);
    this.asking = undefined;
    if (!card) return;
    card.open = true;
    card.scrollIntoView({ block: "nearest" });
    (card.querySelector("form :is(input, textarea)") ?? card.firstChild).focus();
  }

  pause() { steer(this, this.state.paused ? "resume" : "pause"); }

  async go(rest, query) {
    this.asked = [rest, query];
    if (!await this.ready || this.app.page !== this || this.asked[0] !== rest) return;
    const [what, a, b] = rest;
    const key = views.some(([k]) => k === what) ? what : ["tasks", "edges"].includes(what) ? this.viewKey ?? "graph" : "graph";
    this.showView(key, rest, query);
    if (what === "tasks" && a) this.showTask(a, query);
    else if (what === "edges" && b) this.showPanel(new EdgePanel(this, a, b), "edge" + a + "\n" + b);
    else this.closePanel();
    const before = this.focused;
    this.layout();
    this.focused = this.panel;
    if (this.panel && this.panel !== before && !this.keepFocus) this.panel.focus();
    this.keepFocus = false;
    if (this.asking) this.showQuestion();
  }

  showView(key, rest, query) {
    for (const a of this.tabs.children) {
      if (a.dataset.key === key) a.setAttribute("aria-current", "page");
      else a.removeAttribute("aria-current");
      if (a.dataset.key === key) this.tabs.scrollLeft += a.getBoundingClientRect().left - (this.tabs.clientWidth - a.offsetWidth) / 2; // to the middle
    }
    if (this.viewKey !== key) {
      this.view?.close?.();
      this.viewKey = key;
      const [, title, View] = views.find(([k]) => k === key);
      this.main.setAttribute("aria-label", title);
      this.view = new View(this);
      fill(this.main, this.view.el);
    }
    if (rest[0] === key) this.view.go?.(rest.slice(1), query);
  }

  showTask(id, query) {
    const known = this.state.find(id);
    if (this.panel instanceof TaskPanel && this.panel.id === (known?.id ?? id)) return this.panel.go(query);
    this.showPanel(new TaskPanel(this, known?.id ?? id), "task" + id);
    this.panel.go(query);
    this.view?.select?.(known?.id ?? id);
  }

  showPanel(panel, key) {
    if (this.panelKey === key) return;
    this.panel?.close?.();
    this.panel = panel;
    this.panelKey = key;
    fill(this.aside, panel.el);
    this.aside.scrollTop = 0;
  }

  closePanel() {
    if (!this.panel) return;
    this.panel.close?.();
    this.panel = this.panelKey = null;
    fill(this.aside);
    this.view?.select?.(null);
    this.view?.focus?.();
  }

  layout() {
    this.aside.hidden = !this.panel;
    this.grip.hidden = !this.panel;
    this.split.classList.toggle("with-panel", Boolean(this.panel));
    this.split.classList.toggle("full", Boolean(this.panel) && this.full);
  }

  toggleFull() {
    this.full = !this.full;
    this.app.store.set("full", this.full ? "1" : "");
    this.layout();
  }

  dragging() {
    const put = (share) => {
      share = Math.max(30, Math.min(75, share));
      this.grip.setAttribute("aria-valuenow", Math.round(share));
      this.body.style.setProperty("--panel", share + "%");
      this.app.store.set("panel", share);
    };
    this.grip.addEventListener("pointerdown", (e) => {
      e.preventDefault();
      this.grip.setPointerCapture(e.pointerId);
      this.grip.onpointermove = (m) => {
        const r = this.split.getBoundingClientRect();
        put((r.right - m.clientX) / r.width * 100);
      };
      this.grip.onpointerup = () => { this.grip.onpointermove = null; };
    });
    this.grip.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: 3, ArrowRight: -3 }[e.key];
      if (by) put(Number(this.grip.getAttribute("aria-valuenow")) + by);
    });
    const saved = Number(this.app.store.get("panel"));
    if (saved) queueMicrotask(() => put(saved));
  }

  openTask(id, query = { tab: this.lastTab }) { this.app.go(this.taskLink(id, query)); }

  back() { this.app.go(this.link(this.viewKey)); }

  escape() {
    if (this.panel) this.back();
  }

  press(e) {
    const n = Number(e.key);
    if (n >= 1 && n <= views.length) this.app.go(this.link(views[n - 1][0]));
    else if (e.key === "p" && this.state.live && this.app.viewer.canSteer) this.pause();
    else if (e.key === "f" && this.panel) this.toggleFull();
    else if (e.key === "j" || e.key === "k") this.step(e.key === "j" ? 1 : -1);
    else if (e.key.toLowerCase() === "w") this.follow();
    else if (e.key === "/") {
      this.app.go(this.link("list"));
      setTimeout(() => this.view?.focusFilter?.(), 50);
    } else return false;
    return true;
  }

  // follow asks how the text got here that is selected, or at the cursor of the only text.
  follow() {
    const at = document.getSelection()?.anchorNode, views = [...this.body.querySelectorAll(".tv")].map((el) => el.view).filter((v) => v.onselect);
    const view = views.find((v) => v.el.contains(at)) ?? views.findLast((v) => v.cursor > 0);
    if (view) view.follow();
    else toast(howToFollow);
  }

  step(by) {
    const { order } = this.state;
    if (order.length === 0) return;
    const i = order.findIndex((t) => t.id === this.panel?.id);
    this.openTask(order.at((i + by) % order.length).id);
  }

}

