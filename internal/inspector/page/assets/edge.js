// One edge: what the gate decided about each piece of context that was offered along it.

import { exported, get, ofRun } from "./api.js";
import { bdi, bold, button, bytes, clock, code, empty, failure, fill, h, labelChip, loading, muted, note, plural, statusIcon } from "./dom.js";
import { kinds, pair, paths } from "./prompt.js";
import { nameOf, stateOf } from "./state.js";

// replyWords says what became of the reply that a handoff requires.
function replyWords(r) { return ({ waiting: "waiting for a reply", none: "no reply" }[r.state] ?? r.state) + (r.code ? ": " + r.code : ""); }

// handoffsOf reads the decisions about a task, or from one agent to another, and what agents sent to each other.
export async function handoffsOf(page, of) {
  const read = (of) => get(ofRun(page, "handoffs") + "?" + new URLSearchParams(of));
  if (!exported) return read(of);
  const docs = await Promise.all((of.task ? [of.task] : page.state.order.map((t) => t.id)).map((task) => read({ task }).catch(() => ({ handoffs: [] }))));
  if (of.task) return docs[0];
  const sent = new Map(docs.flatMap((doc) => doc.sent ?? []).filter((x) => x.fromNodeId === of.from && (x.toNodeId === of.to || x.toNodeId === "*")).map((x) => [x.id, x]));
  return { handoffs: docs.flatMap((doc, i) => doc.handoffs.filter((d) => d.taskId === page.state.order[i].id && d.fromAgentId === of.from && d.toAgentId === of.to)), sent: [...sent.values()] };
}

// sentList shows handoffs as rows that open: what they say, and who has read them.
export function sentList(page, list) {
  return h("div", { class: "handoffs" }, list.map((x) => {
    const by = x.meta.read.filter((r) => r.verdict === "passed"), p = x.payload;
    return h("details", { class: "handoff sent " + (by.length > 0 ? "v-passed" : "") }, h("summary", null, h("span", { class: "verdict" }, h("span", { "aria-hidden": "true" }, by.length > 0 ? "●" : "○"), by.length > 0 ? " read" : " unread"),
      h("span", null, bold(x.fromNodeId), " → ", bold(x.toNodeId)), h("span", { class: "ho-what muted" }, bdi(p.message.slice(0, 80))), x.meta.reply && h("span", { class: "tag reply" }, replyWords(x.meta.reply)), x.meta.classification && labelChip(x.meta.classification)),
    h("div", { class: "decision" }, h("p", { class: "quoted" }, bdi(p.message)), p.structured !== undefined && h("pre", { class: "quoted" }, bdi(JSON.stringify(p.structured, null, 2))),
      h("dl", { class: "pairs" }, pair("Status", p.status && [p.status.ok ? "ok" : "not ok", p.status.reason && [", ", bdi(p.status.reason)]]), pair("Artifacts", p.artifacts?.map((a) => h("div", null, bdi(a.type), " ", code(a.ref)))),
        pair("Notes", p.meta && code(JSON.stringify(p.meta))), pair("Response", p.response && [bdi(p.response.expectation), ", to ", bdi(p.response.replyTo)]), pair("Reply", x.meta.reply && [replyWords(x.meta.reply), x.meta.reply.handoff && [" by ", code(x.meta.reply.handoff)]]), pair("Answers", x.contextRef && code(x.contextRef)), pair("ID", code(x.id)),
        pair("Sent", [h("span", { class: "mono" }, clock(x.createdAt)), x.meta.task && [" by ", place(page, x.meta)]]), x.meta.read.map((r) => pair(r.verdict === "passed" ? "Read" : "Withheld", [h("span", { class: "mono" }, clock(r.time)), r.verdict === "passed" ? " by " : " from ", place(page, r)])))));
  }));
}

// place names a turn of a task, which opens.
function place(page, of) { return [button(bdi(of.title), () => page.openTask(of.task), { class: "link" }), of.attempt > 1 && ", attempt " + of.attempt, ", turn " + of.turn]; }

// handoffList shows decisions as rows that open.
export function handoffList(page, list) {
  return h("div", { class: "handoffs" }, list.map((d) => {
    const el = h("details", { class: "handoff v-" + d.verdict, ontoggle: () => { if (el.children.length === 1) el.append(decision(page, d)); } }, summary(page, d));
    return el;
  }));
}

function sourceName(page, s) {
  const t = page.state.tasks.get(s.name);
  if (t) return (s.kind === "files" ? "files of " : "") + (t.name || t.title);
  return s.kind + (s.name && s.name !== s.kind ? " " + s.name.replace(/^.*#/, "") : "");
}

function summary(page, d) {
  const narrowed = d.contextAfterScoping?.fieldsExcluded?.length > 0;
  return h("summary", null,
    h("span", { class: "verdict" }, h("span", { "aria-hidden": "true" }, d.verdict === "passed" ? narrowed ? "◐" : "●" : "▒"), " ", d.verdict === "passed" ? narrowed ? "in part" : "passed" : d.verdict),
    h("span", null, bold(d.fromAgentId), " → ", bold(d.toAgentId)), h("span", { class: "ho-what muted" }, bdi(sourceName(page, d.source))), labelChip(d.labelAfter ?? d.labelBefore),
    d.contextBeforeScoping && h("span", { class: "ho-size muted num" }, bytes(d.contextBeforeScoping.bytes ?? 0) + " → " + bytes(d.contextAfterScoping?.bytes ?? 0)));
}

function sizes(d) {
  if (!d.contextBeforeScoping) return null;
  const a = d.contextBeforeScoping, b = d.contextAfterScoping ?? {}, most = Math.max(1, a.bytes ?? 0, b.bytes ?? 0);
  const row = (name, x, cls) => h("div", { class: "size-row" }, h("span", null, name), h("span", { class: "size-track", "aria-hidden": "true" }, h("i", { class: cls, style: { width: (x.bytes ?? 0) / most * 100 + "%" } })), h("span", { class: "num" }, bytes(x.bytes ?? 0), muted(" · about " + plural(x.totalTokens ?? 0, "token"))));
  return h("div", { class: "sizes" }, row("before", a, "s-before"), row("after", b, "s-after"), d.coarse && note(d.callerSees ? "The journal does not store sizes above confidential." : "You may not see the value, nor its size."));
}

function decision(page, d) {
  const after = d.contextAfterScoping ?? {};
  return h("div", { class: "decision" }, sizes(d),
    h("div", { class: "decision-cols" },
      h("section", null, h("h4", null, "Contract"), h("dl", { class: "pairs" }, pair("Mode", d.handoffMode), pair("Rule", [bdi(d.governanceRuleId), d.line && [" ", code(d.line)]]), pair("Entries", d.policyEntries?.length > 0 && d.policyEntries.map((e, i) => [i ? ", " : "", bdi(e)])), pair("Session", h("code", { class: "session" }, bdi(d.sessionId.replace(page.id + "/", "…/")))), pair("Policy", d.policyDigest && code(d.policyDigest.slice(0, 12))))),
      h("section", null, h("h4", null, "Decision"), h("dl", { class: "pairs" }, pair("Verdict", d.verdict), pair("Why", d.reason && bdi(d.reason.replaceAll("_", " "))), pair("Detail", d.detail && bdi(d.detail)), pair("Label", d.labelBefore !== d.labelAfter ? [labelChip(d.labelBefore), " → ", labelChip(d.labelAfter)] : labelChip(d.labelBefore)), pair("Redacted", kinds(d.redacted)), pair("Revealed", kinds(d.revealed)), pair("Translated", d.conversationTranslationApplied && "into the minimal form"), pair("When", h("span", { class: "mono" }, clock(d.timestamp)))))),
    (after.fieldsIncluded?.length > 0 || after.fieldsExcluded?.length > 0) && h("div", { class: "fields" },
      h("section", null, h("h4", null, "Delivered"), after.fieldsIncluded?.length > 0 ? paths(after.fieldsIncluded) : note(d.verdict === "passed" ? "all of it" : "nothing")),
      h("section", { class: "excluded" }, h("h4", null, "Left out"), after.fieldsExcluded?.length > 0 ? paths(after.fieldsExcluded) : note("nothing"))),
    d.taskId && h("p", { class: "source-links" }, button("Open the reader's prompt", () => page.openTask(d.taskId, { tab: "prompt" }), { class: "link" }), page.state.tasks.has(d.source.name) && button("Open the result", () => page.openTask(d.source.name, { tab: "result" }), { class: "link" })));
}

const most = 200;

// memberList lists tasks that open.
function memberList(page, ids, open) {
  const list = h("ul", { class: "plain members" }), draw = () => {
    const words = filter.value.toLowerCase(), tasks = ids.map((id) => page.state.tasks.get(id)).filter((t) => t && nameOf(t).toLowerCase().includes(words));
    fill(list, tasks.slice(0, most).map((t) => h("li", null, statusIcon(t.status), " ", button(bdi(nameOf(t)), () => open(t.id), { class: "link" }), " ", muted(bdi(stateOf(t))))), tasks.length > most && h("li", { class: "muted" }, "and " + plural(tasks.length - most, "more task")));
  };
  const filter = h("input", { type: "search", "aria-label": "Filter these tasks", placeholder: "Filter", oninput: draw });
  draw();
  return [ids.length > 10 && filter, list];
}

export class EdgePanel {
  // from is a task, input:NAME, a fold or an agent; to is a task, a fold or an agent.
  constructor(page, from, to) {
    Object.assign(this, { page, from, to });
    this.body = h("div", { class: "panel-body" });
    const name = (x) => page.state.find(x)?.name || page.state.find(x)?.title || x.replace(/^input:/, "input ").replace(/^fold:/, "");
    this.el = h("div", { class: "edge-panel" }, h("header", { class: "panel-head" }, h("div", { class: "panel-title" }, h("h2", { tabindex: "-1" }, bdi(name(from)), " → ", bdi(name(to))), h("div", { class: "panel-tools" }, button("✕", () => page.back(), { class: "icon", "aria-label": "Close", title: "Close (Esc)" })))), this.body);
    this.load();
  }

  focus() { this.el.querySelector("h2").focus({ preventScroll: true }); }

  async load() {
    fill(this.body, loading("the handoff"));
    const { page, from, to } = this, { state } = page, reader = state.find(to), source = state.find(from);
    try {
      const graph = [from, to].some((id) => id.startsWith("fold:")) && await get(ofRun(page, "graph"));
      const membersOf = (id) => id.startsWith("fold:") ? graph.nodes.filter((n) => n.folds?.some((p) => id === "fold:" + p.fold)).map((n) => n.id) : null;
      const of = membersOf(from), sources = new Set(of ?? [source?.id ?? from]), members = membersOf(to);
      if (members) {
        const read = new Set(graph.edges.flatMap((e) => sources.has(e.from) ? e.to : [])), some = members.filter((id) => read.has(id)), readers = some[0] ? some : members;
        return fill(this.body, h("p", null, "The handoffs to one of ", plural(readers.length, "task"), ":"), memberList(page, readers, (id) => page.app.go(page.edgeLink(from, id))));
      }
      const { handoffs, sent = [] } = await handoffsOf(page, reader ? { task: reader.id } : { from, to });
      const messages = sent.filter((x) => !reader || sources.has(x.meta.task) && x.meta.read.some((r) => r.task === reader.id));
      for (const x of messages) sources.add(x.id);
      const list = handoffs.filter((d) => !reader || d.taskId === reader.id && d.toAgentId !== "user" && (of || source ? sources.has(d.source.name.split("#")[0]) : from.startsWith("input:") ? d.source.kind === "input" && d.source.name === from.slice(6) : d.fromAgentId === from));
      fill(this.body, messages.length > 0 && [h("h3", null, plural(messages.length, "handoff")), sentList(page, messages)], list.length === 0 ? empty("Nothing has been offered along this edge", reader && !reader.startedAt ? "The reader has not begun." : "It orders the tasks, or is the condition of one.") : [h("h3", null, plural(list.length, "decision") + " of the gate"), handoffList(page, list)]);
      const first = this.body.querySelector("details");
      if (first) first.open = true;
    } catch (err) {
      fill(this.body, failure(err, () => this.load()));
    }
  }
}
