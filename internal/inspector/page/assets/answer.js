// The answer of a run with its inputs and errors, and its events.

import { ofRun } from "./api.js";
import { bdi, bytes, clock, code, count, empty, failure, fill, h, heads, hint, inOut, labelChip, loading, money, note, statusWord } from "./dom.js";
import { VirtualList, matching } from "./list.js";
import { answerBlock } from "./markdown.js";
import { origin } from "./trace.js";

export class AnswerView {
  constructor(page) {
    this.page = page;
    this.answer = h("section");
    this.rest = h("div");
    this.el = h("div", { class: "scroll pad answer" }, this.answer, this.rest);
    this.draw();
  }

  close() { this.view?.close(); }

  draw() {
    const { doc, live } = this.page.state, shown = String(live) + doc.output;
    if (shown !== this.shown) this.drawAnswer(doc, live); // else somebody may be selecting in it
    this.shown = shown;
    fill(this.rest,
      doc.errors?.length > 0 && h("section", null, h("h2", null, "Errors"), h("ul", { class: "plain" }, doc.errors.map((e) => h("li", { class: "notice bad" }, code(e.code ?? "error"), " ", bdi(e.message))))),
      doc.warnings?.length > 0 && h("section", null, h("h2", null, "Warnings"), h("ul", { class: "plain" }, doc.warnings.map((w) => h("li", { class: "notice" }, bdi(w))))),
      this.usage(),
      h("section", null, h("h2", null, "Inputs"), doc.inputs?.length > 0 ? h("table", { class: "grid slim" },
        heads(["Input", "Label", "Size", "Line"]),
        h("tbody", null, doc.inputs.map((i) => h("tr", null, h("td", null, bdi(i.name)), h("td", null, labelChip(i.classification)), h("td", { class: "num" }, i.bytes === undefined ? "" : bytes(i.bytes)), h("td", { class: "mono" }, bdi(i.line ?? "")))))) : note("none")),
      doc.commands?.length > 0 && h("section", null, h("h2", null, "Steered"), h("ul", { class: "plain" }, doc.commands.map((c) => h("li", null, h("span", { class: "mono muted" }, clock(c.sentAt)), " ", h("b", null, c.command), " ", bdi(c.title || c.agent || ""), " by ", bdi(c.by), c.reason && [": ", bdi(c.reason)])))));
  }

  drawAnswer(doc, live) {
    this.view?.close();
    this.view = doc.output ? answerBlock(this.page, doc.output, { label: "The answer", path: ofRun(this.page, "blocks"), most: 60, onselect: origin(this.page) }) : null;
    fill(this.answer, h("h2", null, "Answer"), this.view ? [hint("Select any text to see how it got here."), this.view.el] : live ? empty("No answer yet", "It appears when the run ends.") : empty("This run has no answer"));
  }

  usage() {
    const { usage } = this.page.state;
    if (!usage?.agents?.length) return null;
    const row = (r, name) => h("tr", null, h("td", null, bdi(name)), h("td", { class: "right num" }, count(r.calls)), h("td", { class: "right num" }, count(r.tokenUsage?.input_tokens)), h("td", { class: "right num" }, count(r.tokenUsage?.output_tokens)), h("td", { class: "right num" }, money(r.cost) || "–"));
    return h("section", null, h("h2", null, "Use"), h("table", { class: "grid slim" },
      heads(["Agent", "Calls", "In", "Out", "Cost"], [1, 2, 3, 4]),
      h("tbody", null, usage.agents.map((r) => row(r, r.agent)), (usage.models ?? []).map((r) => row(r, r.model || "no model")), row(usage.total, "total"))));
  }

  update(_, whole) { if (whole) this.draw(); }
}

export class EventsView {
  constructor(page) {
    this.page = page;
    this.state = page.state;
    this.filter = h("input", { type: "search", "aria-label": "Filter events", placeholder: "Filter by type, task or agent", oninput: () => this.draw(true) });
    this.found = h("span", { class: "muted num", role: "status" });
    this.list = new VirtualList({ height: 28, label: "Events", role: "listbox", key: (i) => this.rows[i], row: (i) => this.row(this.rows[i]), onopen: (i) => this.open(this.rows[i]) });
    this.none = h("div");
    this.el = h("div", { class: "events" }, h("div", { class: "toolbar" }, this.filter, this.found), this.none, this.list.el);
    this.load();
  }

  async load() {
    if (this.state.events.length === 0) fill(this.none, loading("the events"));
    try {
      await this.state.readEvents();
      this.draw(true);
    } catch (err) {
      fill(this.none, failure(err, () => this.load()));
    }
  }

  draw(fresh) {
    this.rows = matching(this.filter, this.state.events, (e) => `${e.type} ${e.name ?? ""} ${e.title ?? ""} ${e.agent ?? ""} ${e.code ?? ""} ${e.handoff?.verdict ?? ""}`);
    fill(this.found, count(this.rows.length) + " events");
    const end = this.list.el.scrollTop + this.list.el.clientHeight > this.list.el.scrollHeight - 60;
    this.list.reset(this.rows.length, fresh);
    if (end && this.state.live) this.list.el.scrollTop = this.list.el.scrollHeight;
    fill(this.none, this.rows.length === 0 && empty(this.filter.value ? "No event fits the filter" : "No events yet"));
  }

  row(e) {
    return h("div", { class: "ev-row ev-" + e.type, role: "option", "aria-selected": "false" },
      h("span", { class: "mono muted ev-time" }, clock(e.time)), h("span", { class: "ev-type" }, e.type.replaceAll("_", " ")), h("span", null, bdi(e.name || e.title || "")), h("span", { class: "ev-what muted" }, bdi(whatHappened(e))));
  }

  open(e) {
    if (e.handoff && e.handoff.toAgentId !== "user" && e.task) this.page.app.go(this.page.edgeLink(e.handoff.source.kind === "dependency" ? e.handoff.source.name : e.handoff.fromAgentId, e.task));
    else if (e.task) this.page.openTask(e.task, e.type.startsWith("tool_") ? { tab: "activity" } : undefined);
  }

  update(changed, whole) {
    if (changed.size > 0 || whole) this.drawing ??= setTimeout(() => { this.drawing = undefined; this.draw(); }, 120);
  }
}

// whatHappened says in a few words what an event reports.
export function whatHappened(e) {
  const d = e.handoff;
  if (d) return `${d.fromAgentId} → ${d.toAgentId}: ${d.verdict}${d.reason ? ", " + d.reason : ""}, ${d.governanceRuleId}${d.line ? " (" + d.line + ")" : ""}`;
  const parts = [e.agent, e.status && statusWord(e.status), e.code, e.from && "from " + e.from, e.type === "agent_transfer" && "to " + e.to, e.input_tokens && inOut(e, count), e.attempt > 1 && "attempt " + e.attempt, e.message];
  return parts.filter(Boolean).join(", ");
}

