// The state of one run: its document, kept up to date by its events. Events are collected and
// applied once per frame; listeners learn which tasks changed.

import { exported, follow, get, ofRun } from "./api.js";
import { statusWord } from "./dom.js";

// Events of what the document calls the activity of a task.
const active = /^(agent|tool)_|^task_waiting$/;

export class RunState {
  constructor(id) {
    this.id = id;
    this.tasks = new Map();
    this.order = [];
    this.steps = [];
    this.events = [];
    this.texts = new Map(); // what is being written, by task
    this.listeners = new Set();
    this.queue = [];
    this.usage = null;
    this.live = false;
    this.withheld = 0;
    this.redacted = 0;
    this.series = []; // [time, tokens so far]
    this.sent = new Map(); // the task that sent a handoff, by ID
    this.ways = new Map(); // pairs of tasks, of which one has read a handoff of the other
    this.held = new Map(); // ▒ by the nodes of an edge along which context was withheld, ◐ if it was a part
    this.connection = "";
  }

  async load() {
    this.take(await get(ofRun(this)));
  }

  // take replaces the state by a document.
  take(doc) {
    this.doc = doc;
    this.id = doc.runId;
    this.status = doc.status;
    this.live = !exported && Boolean(doc.holder) && (doc.status === "running" || doc.status === "paused");
    this.total = { input: doc.totalTokenUsage?.input_tokens ?? 0, output: doc.totalTokenUsage?.output_tokens ?? 0 };
    const old = this.tasks;
    this.tasks = new Map();
    this.order = [];
    this.steps = [];
    this.shape = (this.shape ?? 0) + 1; // the graph has to be read again
    for (const t of doc.coordinator ?? []) this.steps.push(this.adopt(t, old, true));
    for (const t of doc.tasks ?? []) this.order.push(this.adopt(t, old));
    this.since = Math.max(0, ...[...this.tasks.values()].map((t) => t.since), ...(doc.commands ?? []).map((c) => Date.parse(c.sentAt) || 0));
    this.known = doc.commands?.length ?? 0; // commands, whose events come again
    if (!this.live) for (const t of this.tasks.values()) t.until = Date.parse(doc.endedAt); // if it has no end
    this.recount();
  }

  adopt(t, old, step) {
    const was = old.get(t.id);
    t.step = step;
    t.model = t.call?.model ?? was?.model ?? "";
    t.since = Math.max(Date.parse(t.startedAt) || 0, Date.parse(t.endedAt) || 0);
    t.activity = Math.max(Date.parse(t.lastActivityAt) || 0, was?.activity ?? 0);
    if (t.waitingFor) t.status = "waiting";
    if (t.awaitedReplies) this.awaits(t, new Map(t.awaitedReplies.map((w) => [w.id, w.agent])));
    t.status = outcome(t, t.attempts > 0);
    t.log = was?.log ?? [];
    t.session = was?.session;
    Object.assign(t, { messages: was?.messages, kids: was?.kids, called: was?.called, chain: was?.chain });
    this.tasks.set(t.id, t);
    return t;
  }

  recount() {
    this.counts = {};
    for (const t of this.order) this.counts[kindOf(t)] = (this.counts[kindOf(t)] ?? 0) + 1;
  }

  find(id) {
    return this.tasks.get(id) ?? this.order.find((t) => t.title === id || t.key === id || t.name === id);
  }

  // start follows the events of the run, and what its models write.
  start() {
    if (this.stops) return;
    this.stops = [follow(ofRun(this, "events"), {
      event: (type, e) => this.push(e),
      state: (state, err) => this.connected(state, err),
    })];
    this.stops.push(follow(ofRun(this, "stream"), {
      event: (_, d) => this.push({ type: "delta", ...d }),
      state: (state) => { this.streams = state === "open"; },
    }));
  }

  // readEvents reads the events of a run that has ended, once.
  readEvents() {
    if (this.stops) return;
    this.past ??= this.readPast().catch((err) => {
      this.past = undefined;
      throw err;
    });
    return this.past;
  }

  async readPast() {
    const { events } = await get(ofRun(this, "events"));
    for (const e of events) this.apply(e, new Set(), true);
    this.tell(new Set(), true);
  }

  stop() {
    clearTimeout(this.reading);
    for (const stop of this.stops ?? []) stop();
    this.stops = null;
  }

  connected(state, err) {
    this.connection = state;
    this.refusal = err;
    if (state === "end") this.finish();
    this.tell(new Set(), true);
  }

  async finish() {
    for (const stop of this.stops?.slice(1) ?? []) stop();
    this.flush();
    try {
      this.take(await get(ofRun(this)));
    } catch { /* what the events said stays */ }
    this.live = false;
    this.tell(new Set(this.tasks.keys()), true);
  }

  push(e) {
    this.queue.push(e);
    if (this.timer) return;
    const run = () => {
      cancelAnimationFrame(frame);
      clearTimeout(this.timer);
      this.timer = 0;
      this.flush();
    };
    const frame = requestAnimationFrame(run);
    this.timer = setTimeout(run, 250); // a hidden page has no frames
  }

  flush() {
    const changed = new Set(), queue = this.queue;
    this.queue = [];
    if (queue.length === 0) return;
    for (const e of queue) this.apply(e, changed);
    this.tell(changed, false);
  }

  tell(changed, whole) {
    for (const f of [...this.listeners]) f(changed, whole);
  }

  listen(f) {
    this.listeners.add(f);
    return () => this.listeners.delete(f);
  }

  apply(e, changed, past) {
    if (e.type === "delta") return this.delta(e, changed);
    if (e.receipt) {
      e.sources = e.receipt.sources?.length;
      delete e.receipt;
    }
    this.events.push(e);
    const at = Date.parse(e.time);
    if (e.type === "context_handoff") this.handed(e);
    if (e.type === "message" || e.type === "message_sent") this.message(e, changed);
    this.teamwork(e);
    if (past) {
      this.tasks.get(e.task)?.log.push(e);
      return;
    }
    if (e.plan) this.planned(e.plan);
    if (e.type === "steered") this.steered(e);
    if (at >= this.since) this.status = { run_start: "running", run_complete: e.code, pause: "paused", resume: "running" }[e.type === "steered" ? e.code : e.type] ?? this.status;
    const t = this.tasks.get(e.task);
    if (!t) return e.task && this.readAgain();
    changed.add(t.id);
    t.log.push(e);
    if (active.test(e.type)) t.activity = Math.max(t.activity, at);
    if (at >= t.since && (this.live || this.doc.endedAt)) this.advance(t, e);
  }

  // readAgain reads the document again, which had no such task or step of the coordinator yet.
  readAgain() {
    this.reading ??= setTimeout(async () => {
      await this.load().catch(() => {});
      this.reading = undefined;
      this.tell(new Set(this.tasks.keys()), true);
    }, 300);
  }

  // message takes a handoff that was sent, or a message that was delivered.
  message(e, changed) {
    const from = e.type === "message" ? this.sent.get(e.id) : undefined;
    if (e.type === "message_sent") this.sent.set(e.id, e.task);
    if (from) this.ways.set(from + " " + e.task, { from, to: e.task });
    for (const t of [from, e.task].map((id) => this.tasks.get(id))) {
      if (!t) continue;
      t.messages = (t.messages ?? 0) + 1;
      changed.add(t.id);
    }
  }

  // teamwork takes in the children of a task and the holders of its conversation, which events from before
  // the document has say too.
  teamwork(e) {
    const t = this.tasks.get(e.task), { attempt = 1 } = e;
    if (!t) return;
    if (e.type === "agent_spawn" || e.type === "agent_result") (t.kids ??= new Map()).set(e.child, e.type === "agent_result");
    else if (e.type === "tool_start") (t.called ??= new Map()).set(e.from, (t.called.get(e.from) ?? 0) + 1);
    else if (e.type === "agent_start" && !e.child) t.turns = (t.turns ?? 0) + 1;
    else if (e.type === "agent_transfer") {
      if (t.chain?.attempt !== attempt) t.chain = { attempt, list: [] };
      t.chain.list.push(e.to);
    }
  }

  handed(e) {
    const d = e.handoff, toAgent = d.toAgentId !== "user" && d.source?.kind !== "condition", whole = toAgent && d.verdict !== "passed", part = d.contextAfterScoping?.fieldsExcluded;
    if (toAgent) this.withheld += part?.length ?? whole;
    const edge = (d.source?.kind === "input" ? "input:" : "") + d.source?.name + "\n" + e.task;
    if (toAgent && (whole || part) && this.held.get(edge) !== "▒") this.held.set(edge, whole ? "▒" : "◐");
    for (const k in d.redacted ?? {}) this.redacted += d.redacted[k];
    if (d.toAgentId === "user" && d.source?.kind === "dependency") {
      const t = this.tasks.get(d.source.name);
      if (t) t.label ??= d.labelBefore;
    }
  }

  advance(t, e) {
    const was = kindOf(t);
    switch (e.type) {
      case "task_ready": t.status = "ready"; t.connection = "disconnected"; t.error = t.endedAt = undefined; break;
      case "task_start": t.status = "in_progress"; t.startedAt = e.time; break;
      case "agent_start":
        t.status = "in_progress";
        if (!t.replies?.size) t.waitingFor = "";
        t.attempts = Math.max(t.attempts ?? 0, e.attempt ?? 1);
        worksOn(t);
        t.note = e.agent === t.holder ? "transferred to " + e.agent : "";
        break;
      case "agent_complete": if (!e.child) t.connection = t.step ? "disconnected" : "idle"; break;
      case "task_complete": this.completed(t, e); break;
      case "task_skipped": case "task_not_needed": case "error": this.ended(t, e); break;
      case "task_waiting": t.status = "waiting"; t.waitingFor = e.agent; t.connection = "idle"; break;
      case "task_retry": t.note = "retries" + (e.waitMs ? " in " + Math.round(e.waitMs / 100) / 10 + " s" : ""); t.connection = "idle"; break;
      case "rate_limited": t.note = "waits for the endpoint"; break;
      case "reply_wait": case "reply_end": this.awaited(t, e); break;
      case "tool_start": worksOn(t); if (!e.child) t.tool = e.from; break;
      case "tool_complete": if (!e.child) t.tool = ""; break;
      case "agent_transfer": t.holder = e.to; break;
    }
    const now = kindOf(t);
    if (was !== now && !t.step) {
      this.counts[was]--;
      this.counts[now] = (this.counts[now] ?? 0) + 1;
    }
  }

  // awaited takes in that a task waits for a reply, or does not any more.
  awaited(t, e) {
    const replies = t.replies ?? new Map();
    if (e.type === "reply_wait") replies.set(e.id, e.from);
    else if (e.code !== "REPLY_PENDING") replies.delete(e.id);
    this.awaits(t, replies);
    worksOn(t);
  }

  awaits(t, replies) {
    t.replies = replies;
    t.waitingFor = t.replies.size ? "a reply of " + [...new Set(t.replies.values())].join(", ") : "";
    t.status = t.waitingFor ? "waiting" : "in_progress";
  }

  completed(t, e) {
    t.status = "completed";
    t.endedAt = e.time;
    t.connection = "disconnected";
    t.model = e.call?.model ?? t.model;
    const old = t.tokenUsage ?? {};
    this.total.input += (e.input_tokens ?? 0) - (old.input_tokens ?? 0);
    this.total.output += (e.output_tokens ?? 0) - (old.output_tokens ?? 0);
    t.tokenUsage = { input_tokens: e.input_tokens ?? 0, output_tokens: e.output_tokens ?? 0 };
    t.stale = true; // the result is not in the event
    this.series.push([Date.parse(e.time), this.total.input + this.total.output]);
  }

  ended(t, e) {
    t.status = e.status ?? { task_skipped: "skipped", task_not_needed: "not_needed", error: "failed" }[e.type];
    t.connection = "disconnected";
    if (t.startedAt) t.endedAt = e.time;
    if (e.type === "task_not_needed") t.reason = e.message;
    else t.error = { ...e, message: e.message ?? "" };
    t.status = outcome(t, Boolean(t.startedAt));
  }

  planned(plan) {
    for (const p of plan) {
      if (this.tasks.has(p.task)) continue;
      this.order.push(this.adopt({ id: p.task, title: p.title, assignee: p.agent, status: "pending", connection: "disconnected", attempts: 0, tokenUsage: {} }, new Map()));
    }
    this.shape++;
    this.recount();
  }

  steered(e) {
    if (this.known-- > 0) return;
    (this.doc.commands ??= []).push({ command: e.code, by: e.from, reason: e.message, sentAt: e.time, task: e.task, title: e.title, agent: e.agent });
  }

  // asked takes over the open questions. While a run waits for an answer, no event says so.
  asked(list) {
    const who = new Map(list.map((q) => [q.task, q.agent])), changed = new Set();
    for (const t of this.tasks.values()) {
      const waits = who.get(t.id) ?? "";
      if (t.replies?.size || waits === (t.waitingFor || "") || t.status !== "in_progress" && t.status !== "waiting") continue;
      t.waitingFor = waits;
      t.status = waits ? "waiting" : "in_progress";
      t.connection = waits ? "idle" : "connected";
      changed.add(t.id);
    }
    if (changed.size === 0) return;
    this.recount();
    this.tell(changed, false);
  }

  delta(d, changed) {
    const t = this.texts.get(d.task) ?? { text: "", done: false };
    if (d.reset) {
      t.text = "";
      t.done = false;
    }
    t.text += d.text ?? "";
    t.done = Boolean(d.done);
    this.texts.set(d.task, t);
    const task = this.tasks.get(d.task);
    if (!task) return;
    task.streaming = t.text !== "" && !t.done;
    task.activity = Date.now();
    changed.add(task.id);
  }

  get paused() { return this.live && this.status === "paused"; }

  costOf(t) {
    const p = this.usage?.prices?.[t.model];
    return p ? ((t.tokenUsage?.input_tokens ?? 0) * p.input + (t.tokenUsage?.output_tokens ?? 0) * p.output) / 1e6 : undefined;
  }

  // cost is what the run has cost so far: the tasks by the prices, once they are known.
  cost() {
    const known = this.usage?.total?.cost;
    if (!this.usage?.prices || !this.live) return known ?? undefined;
    let sum = 0;
    for (const t of [...this.steps, ...this.order]) sum += this.costOf(t) ?? 0;
    return Math.max(sum, known ?? 0);
  }

  async loadUsage() {
    this.usage = await get(ofRun(this, "usage"));
    this.costs = new Map();
    for (const r of this.usage.rows ?? []) {
      if (r.cost !== null && r.cost !== undefined) this.costs.set(r.task, (this.costs.get(r.task) ?? 0) + r.cost);
      const t = this.tasks.get(r.task);
      if (t && r.model) t.model ||= r.model;
    }
  }

  taskCost(t) {
    return this.costs?.get(t.id) ?? this.costOf(t);
  }
}

// outcome returns the status of a task in the words of the command: a task that failed because of
// another one was skipped, and one that was skipped after it had begun was cancelled.
function outcome(t, begun) {
  if (t.step || !t.error || t.status !== "failed" && t.status !== "skipped") return t.status;
  return t.error.root || t.status === "skipped" && !begun ? "skipped" : t.status === "skipped" ? "cancelled" : t.status;
}

// stateOf says in words how far a task is, and whom it waits for.
export function stateOf(t) { return t.status === "waiting" && t.waitingFor ? "waiting for " + t.waitingFor : statusWord(kindOf(t)); }

// kindOf returns the status of a task, or accepted.
function kindOf(t) { return t.status === "failed" && t.error?.failureAccepted ? "accepted" : t.status; }

// worksOn takes in that an agent works on a task.
function worksOn(t) { t.connection = t.replies?.size ? "idle" : "connected"; }

// doingOf says what a task that is not disconnected does now.
export function doingOf(t) {
  if (t.connection === "idle") return t.status === "waiting" ? "waits for " + (t.waitingFor || t.assignee) : t.note || "";
  if (t.connection !== "connected") return "";
  const { working } = childrenOf(t);
  if (working > 0) return "waits for " + working + (working > 1 ? " children" : " child");
  return t.tool ? "calls " + t.tool.replace("tool:", "") : t.streaming ? "streaming" : t.note || "waits for the model";
}

// childrenOf counts the children of a task.
export function childrenOf(t) {
  if (!t.kids) return t.childCount ?? { working: 0, ended: 0 };
  const open = t.status === "in_progress" || t.status === "waiting", working = open ? [...t.kids.values()].filter((ended) => !ended).length : 0;
  return { working, ended: t.kids.size - working };
}

// toolsOf names the tools that a task has called, such as web_fetch ×3.
export function toolsOf(t) {
  const list = t.called ? [...t.called].map(([tool, calls]) => ({ tool: tool.replace("tool:", ""), calls })) : t.calledTools ?? [];
  return list.map(({ tool, calls }) => tool + (calls > 1 ? " ×" + calls : "")).join(", ");
}

// holdersOf names the holders of a conversation that was transferred, such as triage → billing.
export function holdersOf(t) {
  const to = t.chain?.list ?? t.transferredTo ?? [];
  return to.length > 0 ? [t.assignee, ...to].join(" → ") : "";
}

export function nameOf(t) { return t.name || t.title; }

// tookMs returns how long a task took, or takes until now; undefined if that is unknown.
export function tookMs(t) {
  const ms = (t.endedAt ? Date.parse(t.endedAt) : t.until ?? Date.now()) - Date.parse(t.startedAt);
  return ms >= 0 ? ms : undefined;
}

export function tokensOf(t) { return (t.tokenUsage?.input_tokens ?? 0) + (t.tokenUsage?.output_tokens ?? 0); }
