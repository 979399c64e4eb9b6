// One task: its prompts with their sources, its result, its handoffs, and what happened.

import { exported, get, ofRun } from "./api.js";
import { ago, bdi, bold, button, bytes, clock, code, count, duration, empty, failure, fill, h, heads, hint, inOut, labelChip, loading, money, muted, note, plural, section, statusChip, statusWord } from "./dom.js";
import { handoffList, handoffsOf, sentList } from "./edge.js";
import { answerBlock } from "./markdown.js";
import { PromptView } from "./prompt.js";
import { childrenOf, doingOf, holdersOf, nameOf, stateOf, tokensOf, tookMs } from "./state.js";
import { steer } from "./steer.js";
import { charAt, textBlock } from "./text.js";
import { origin } from "./trace.js";
import { whatHappened } from "./answer.js";

const tabs = [["prompt", "Prompt"], ["result", "Result"], ["handoffs", "Handoffs"], ["children", "Children"], ["activity", "Activity"]];

export class TaskPanel {
  constructor(page, id) {
    Object.assign(this, { page, id });
    this.state = page.state;
    this.views = [];
    this.head = h("header", { class: "panel-head" });
    this.facts = h("dl", { class: "facts" });
    this.stream = h("section", { class: "stream", hidden: true, "aria-label": "What the model writes now" });
    this.tabs = h("div", { class: "subtabs", role: "tablist", "aria-label": "Parts of the task" });
    this.body = h("div", { class: "panel-body", role: "tabpanel", tabindex: "-1" });
    this.el = h("div", { class: "task" }, this.head, this.facts, this.stream, this.tabs, this.body);
    this.key = this.newKey();
    this.draw();
  }

  get task() { return this.state.tasks.get(this.id) ?? { id: this.id, title: this.id, status: "", log: [], tokenUsage: {} }; }

  close() {
    for (const v of this.views) v.close();
    this.live?.close();
  }

  focus() { this.head.querySelector("h2")?.focus({ preventScroll: true }); }

  draw() {
    const t = this.task, { page } = this;
    const act = page.state.live && page.app.viewer.canSteer && !t.step, open = t.status === "in_progress" || t.status === "waiting", asked = page.question(t.id);
    fill(this.head,
      h("div", { class: "panel-title" }, h("h2", { tabindex: "-1" }, bdi(nameOf(t))), h("div", { class: "panel-tools" },
        button("↑", () => page.step(-1), { class: "icon", "aria-label": "Previous task", title: "Previous task (K)" }), button("↓", () => page.step(1), { class: "icon", "aria-label": "Next task", title: "Next task (J)" }),
        button("⤢", () => page.toggleFull(), { class: "icon wide-only", "aria-label": "Full view", title: "Full view (F)" }), button("✕", () => page.back(), { class: "icon", "aria-label": "Close", title: "Close (Esc)" }))),
      h("div", { class: "panel-sub" }, statusChip(t.status, stateOf(t)), labelChip(t.label), t.assignee && h("span", null, muted("by "), bdi(t.assignee)), t.name && t.name !== t.title && muted(bdi(t.title)),
        (act || asked) && h("span", { class: "commands" }, asked && button("Answer", () => page.answer(t.id), { class: "small primary" }), act && [open && button("Interrupt", () => steer(page, "interrupt", t), { class: "small" }), button("Message", () => steer(page, "message", t), { class: "small" }),
          !t.endedAt && t.status !== "completed" && button("Cancel", () => steer(page, "cancelTask", t), { class: "small danger" }), (t.status === "failed" || t.status === "skipped") && button("Run again", () => steer(page, "rerun", t), { class: "small" })])),
      t.error?.message && h("p", { class: "notice bad" }, t.error.code && code(t.error.code), " ", bdi(t.error.message), t.error.root && t.error.root !== t.id && [" ", button("the cause", () => page.openTask(t.error.root), { class: "link" })]),
      t.reason && h("p", { class: "notice" }, bdi(t.reason)));
    this.drawFacts();
    this.drawStream();
    this.drawTabs();
  }

  drawFacts() {
    const t = this.task, x = this.doc?.exchanges ?? [], last = x.at(-1), cost = this.state.taskCost(t), what = doingOf(t);
    const session = last?.sessionId ?? t.log.findLast((e) => e.handoff?.sessionId?.includes(t.id))?.handoff.sessionId;
    const fact = (k, v, cls) => v !== undefined && v !== "" && v !== null && v !== false && h("div", { class: cls }, h("dt", null, k), h("dd", null, v));
    const context = x.find((e) => e.context)?.context;
    fill(this.facts,
      fact("Model", t.model && bdi(t.model)), fact("Endpoint", last?.call?.endpoint && bdi(last.call.endpoint)), fact("Took", tookMs(t) !== undefined && h("span", { class: "num" }, duration(tookMs(t)))),
      fact("Tokens", tokensOf(t) > 0 && h("span", { class: "num", title: "input and output" }, inOut(t.tokenUsage))), fact("Cost", cost > 0 && h("span", { class: "num" }, money(cost))),
      fact("Attempts", t.attempts > 1 && count(t.attempts)), fact("Reused", t.reused && ["from run ", bdi(t.reused.runId.slice(0, 8))]),
      fact("Context", context && h("span", { class: "num", title: "what its prompts sent, of what they would have sent if every agent read everything" }, bytes(context.bytesSent) + " of " + bytes(context.bytesIfShared))),
      fact("Connection", h("span", { class: "conn conn-" + t.connection }, h("i", { "aria-hidden": "true" }), t.connection, what && muted(", ", bdi(what)))),
      fact("Last activity", t.activity > 0 && h("time", { title: new Date(t.activity).toISOString() }, this.state.live ? ago(t.activity) : clock(t.activity))),
      fact("Holders", this.doc?.holders?.map((x, i) => [i ? " → " : "", this.promptLink(x.agent, x.sessionId), x.turn > 0 && muted(" to turn ", count(x.turn))]) ?? holdersOf(t), "wide"),
      fact("Session", session && h("code", { class: "session", title: session }, bdi(session.replace(this.page.id + "/", "…/"))), "wide"));
  }

  promptLink(name, session) { return button(bdi(name), () => this.page.openTask(this.id, { tab: "prompt", session }), { class: "link" }); }

  tick() { if (this.state.live) this.drawFacts(); }

  drawStream() {
    const s = this.state.texts.get(this.id), on = this.state.live && s && !s.done && s.text !== "";
    this.stream.hidden = !on;
    if (!on) {
      this.live?.close();
      this.live = null;
      fill(this.stream);
    } else if (!this.live) {
      this.live = textBlock(" ", { label: "What the model writes now", most: 12 });
      fill(this.stream, h("h3", null, "Writing now"), this.live.el);
    }
    if (on) this.live.setText(s.text);
  }

  go(query) {
    const at = query.get("at"), tab = query.get("tab") ?? this.page.lastTab;
    this.at = at && { range: at.split("-").map(Number), where: query.get("where") ?? "prompt", attempt: Number(query.get("attempt")) || 0 };
    this.session = query.get("session");
    query.set("tab", tab);
    this.show(tab, query, at || this.session);
  }

  show(tab, query = { tab }, force) {
    history.replaceState(null, "", this.page.taskLink(this.id, query));
    if (tab === this.tab && !force) return;
    this.tab = this.page.lastTab = tab;
    this.drawTabs();
    this.tabs.onkeydown = (e) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key], all = this.shownTabs;
      if (!by) return;
      e.preventDefault();
      this.show(all.at((all.findIndex(([k]) => k === this.tab) + by) % all.length)[0]);
      this.tabs.querySelector('[aria-selected="true"]').focus();
    };
    this.body.setAttribute("aria-label", tabs.find(([k]) => k === tab)[1]);
    this.load();
  }

  // drawTabs draws the tabs, that of the children if there are any, unless they are as they were.
  drawTabs() {
    const { tab } = this, kids = childrenOf(this.task), key = tab + (kids.working + kids.ended > 0);
    if (!tab || key === this.tabsKey) return;
    this.tabsKey = key;
    this.shownTabs = tabs.filter(([k]) => k !== "children" || k === tab || kids.working + kids.ended > 0);
    fill(this.tabs, this.shownTabs.map(([key, title]) => button(title, () => this.show(key), { role: "tab", "aria-selected": key === tab ? "true" : "false", tabindex: key === tab ? 0 : -1, data: { key } })));
  }

  async load() {
    const tab = this.tab;
    for (const v of this.views.splice(0)) v.close();
    fill(this.body, loading("the task"));
    try {
      this.doc ??= await get(ofRun(this.page, "tasks", this.id)).catch((err) => { if (!exported) throw err; return this.task; });
      const el = await { prompt: () => this.prompts(), result: () => this.result(), handoffs: () => this.handoffs(), children: () => this.children(), activity: () => this.activity() }[tab]();
      if (this.tab !== tab) return;
      fill(this.body, el);
      this.drawFacts();
    } catch (err) {
      if (this.tab === tab) fill(this.body, failure(err, () => this.load()));
    }
  }

  async receipts() {
    if (!exported) return get(ofRun(this.page, "receipts") + "?task=" + encodeURIComponent(this.id));
    const all = await get(ofRun(this.page, "receipts"));
    return { prompts: all.prompts.filter((p) => p.task === this.id), unsent: (all.unsent ?? []).filter((u) => u.id === this.id) };
  }

  async prompts() {
    const doc = await this.receipts();
    if (!doc.prompts?.length) return doc.unsent?.length ? unsent(doc.unsent) : empty("No prompt", this.task.status === "completed" ? "This task called no model." : "It appears when the task starts.");
    const view = new PromptView(this, doc.prompts);
    this.views.push(view);
    return [doc.unsent?.length > 0 && unsent(doc.unsent), view.el];
  }

  async result() {
    const d = this.doc, all = await get(ofRun(this.page, "artifacts")).catch(() => []), mine = all.filter((a) => a.task === this.id);
    const view = d.result ? answerBlock(this.page, d.result, { label: "The result", path: ofRun(this.page, "tasks", this.id, "blocks"), most: 40, onselect: origin(this.page, this.id), source: this.at?.where === "result" }) : null;
    if (view) {
      this.views.push(view);
      if (this.at?.where === "result") view.show(...this.at.range.map((b) => charAt(d.result, b)));
    }
    const structured = d.structured !== undefined && textBlock(JSON.stringify(d.structured, null, 2), { label: "The structured result", most: 30, onselect: origin(this.page, this.id) });
    if (structured) this.views.push(structured);
    return [
      view ? h("section", null, hint("Select any text to see how it got here.", d.truncated && h("span", { class: "tag warn" }, "truncated")), view.el) : empty("No result", d.error?.message ? bdi(d.error.message) : "The task has not completed."),
      structured && h("details", { open: !view }, h("summary", null, "Structured result"), structured.el),
      mine.length > 0 && section("Artifacts", h("table", { class: "grid slim" }, heads(["Name", "Type", "Label", "Size", "Version"]),
        h("tbody", null, mine.map((a) => h("tr", null, h("td", { class: "mono" }, bdi(a.name)), h("td", null, a.removed ? "removed" : a.type), h("td", null, labelChip(a.label)), h("td", { class: "num" }, a.withheld ? h("span", { class: "tag warn" }, bdi(a.withheld)) : bytes(a.bytes ?? 0)), h("td", null, a.way && bdi(a.way))))))),
    ];
  }

  async handoffs() {
    const { handoffs, sent = [] } = await handoffsOf(this.page, { task: this.id });
    const messages = (title, list) => list.length > 0 && section([title, " ", muted(count(list.length))], sentList(this.page, list));
    const into = handoffs.filter((x) => x.taskId === this.id && x.toAgentId !== "user"), out = handoffs.filter((x) => x.toAgentId === "user" && x.taskId === this.id || x.taskId !== this.id);
    return [
      messages("Inbox", sent.filter((x) => x.meta.task !== this.id)), messages("Sent to agents", sent.filter((x) => x.meta.task === this.id)),
      section(["Incoming ", muted(count(into.length))], into.length > 0 ? handoffList(this.page, into) : note("Nothing was offered to this task.")),
      section(["Outgoing ", muted(count(out.length))], out.length > 0 ? handoffList(this.page, out) : note("Nothing of its result has gone to anybody.")),
    ];
  }

  children() {
    const list = this.doc.children ?? [], kind = { working: "in_progress", complete: "completed", interrupted: "cancelled" };
    if (list.length === 0) return empty("No children", "They appear when the agent spawns one, or delegates a goal.");
    return h("ol", { class: "calls" }, list.map((c) => h("li", { class: "call s-" + ({ complete: "ok", working: "run" }[c.status] ?? "bad") },
      h("div", { class: "call-head" }, statusChip(kind[c.status] ?? "failed", c.status), c.code && code(c.code), c.agent && bold(c.agent), this.promptLink("prompts of " + c.part.replace(/.*\//, ""), c.sessionId), c.attempt > 1 && "attempt " + c.attempt,
        h("span", { class: "muted num" }, inOut(c.tokenUsage), c.partial && " partial", c.endedAt && !c.partial && " · " + duration(Date.parse(c.endedAt) - Date.parse(c.startedAt))), labelChip(c.goalLabel)),
      c.goal && h("p", { class: "quoted goal" }, bdi(c.goal)), c.result && h("details", null, h("summary", null, "Result ", labelChip(c.label)), h("p", { class: "quoted" }, bdi(c.result))))));
  }

  async activity() {
    const x = this.doc.exchanges ?? [];
    if (!this.state.live) await this.state.readEvents().catch(() => {});
    const rejected = (e) => {
      if (!e.rejected) return null;
      const v = textBlock(e.rejected.text, { label: "Rejected answer", most: 10, onselect: origin(this.page, this.id) });
      this.views.push(v);
      return [h("p", { class: "notice bad" }, "Rejected: ", bdi(e.rejected.problem ?? "")), v.el];
    };
    const log = this.task.log;
    return [
      x.length > 0 && section(["Model calls ", muted(count(x.length))], h("ol", { class: "calls" }, x.map((e) => h("li", { class: "call s-" + (e.state === "failed" ? "bad" : e.state === "completed" ? "ok" : "idle") },
        h("div", { class: "call-head" }, h("b", null, "attempt ", count(e.attempt), e.part && [" ", bdi(e.part.replace(/^\//, "").replaceAll("/", " "))]), h("span", null, bdi(e.model ?? e.agent)), h("span", { class: "muted num" }, e.startedAt && clock(e.startedAt), e.endedAt && " · " + duration(Date.parse(e.endedAt) - Date.parse(e.startedAt))), h("span", { class: "muted num" }, e.estimated && "about ", inOut(e.tokenUsage)), h("span", null, statusWord(e.state))),
        h("div", { class: "muted" }, [e.call?.endpoint, e.call?.finishReason && "finished: " + e.call.finishReason, e.call?.requestId, e.turns > 1 && plural(e.turns, "turn"), e.reused && "cached answer of run " + e.reused.slice(0, 8)].filter(Boolean).map((p, i) => [i ? " · " : "", bdi(p)])),
        e.warnings?.map((w) => h("p", { class: "notice" }, bdi(w))), e.error && h("p", { class: "notice bad" }, e.error.code && code(e.error.code), " ", bdi(e.error.message)), rejected(e))))),
      this.doc.toolCalls?.length > 0 && section(["Calls of tools ", muted(count(this.doc.toolCalls.length))], h("ol", { class: "calls" }, this.doc.toolCalls.map((c) => this.toolCall(c)))),
      section(["Events ", muted(count(log.length))], log.length > 0 ? h("ol", { class: "log" }, log.slice(-300).map((e) => h("li", null, h("span", { class: "mono muted" }, clock(e.time)), " ", h("b", null, e.type.replaceAll("_", " ")), " ", muted(bdi(whatHappened(e)))))) : note("None yet.")),
    ];
  }

  // toolCall shows a call of a tool, with its arguments and its result once there is one.
  toolCall(c) {
    const words = { complete: "completed", working: "in_progress", interrupted: "cancelled" };
    const part = (title, text) => {
      if (!text) return null;
      const view = textBlock(text, { label: title + " of " + c.tool, most: 12, onselect: origin(this.page, this.id) });
      this.views.push(view);
      return view.el;
    };
    return h("li", { class: "call tool-call s-" + ({ complete: "ok", working: "run", interrupted: "idle" }[c.status] ?? "bad") },
      h("div", { class: "call-head" }, statusChip(words[c.status] ?? "failed", c.status), bold(c.tool), h("span", null, muted("by "), bdi(c.agent)), c.attempt > 1 && "attempt " + c.attempt,
        h("span", { class: "muted num" }, clock(c.startedAt), c.endedAt && " · " + duration(Date.parse(c.endedAt) - Date.parse(c.startedAt))), c.effect && muted("effect: ", bdi(c.effect)), c.approvedBy && muted("approved by ", bdi(c.approvedBy)), labelChip(c.label)),
      part("Arguments", c.arguments && indented(c.arguments)), part("Result", c.result),
      !c.arguments && !c.result && note("The arguments and the result appear with the next turn of the agent."));
  }

  // newKey is what the panel shows of the task without reading its documents.
  newKey() {
    const t = this.task;
    return stateOf(t) + Boolean(this.page.question(this.id)) + (t.attempts ?? 0) + t.label + this.state.live + (t.messages ?? "") + holdersOf(t) + (t.kids ? JSON.stringify(childrenOf(t)) : "") + (t.kids || t.called ? t.turns + [...t.called?.values() ?? []].join() : "") + (t.error?.message ?? "");
  }

  update(changed, whole) {
    if (!whole && !changed.has(this.id)) return;
    const key = this.newKey();
    this.drawStream();
    if (key === this.key) return;
    this.key = key;
    const name = (el) => el.tagName + (el.getAttribute("aria-label") ?? el.textContent), focus = this.head.contains(document.activeElement) && name(document.activeElement);
    this.draw();
    if (focus) [...this.head.querySelectorAll("h2, button")].find((el) => name(el) === focus)?.focus({ preventScroll: true });
    this.reload();
  }

  // reload reads the documents of the task again, some time after it changed.
  reload() {
    this.reloading ??= setTimeout(() => {
      this.reloading = undefined;
      if (this.page.panel !== this) return;
      if (document.getSelection()?.toString() && this.body.contains(document.getSelection().anchorNode)) return;
      this.doc = undefined;
      this.load();
    }, 700);
  }
}

// indented writes a JSON value in lines; any other text stays as it is.
function indented(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
}

function unsent(list) {
  return h("div", { class: "notice bad" }, h("p", null, "No prompt was sent, since context that the task needs was withheld:"), list.map((u) => (u.held ?? []).map((d) => h("p", null, bdi(d.fromAgentId), " → ", bdi(d.toAgentId), ": ", bdi(d.detail || d.reason || ""), d.line && [" ", code(d.line)]))));
}

