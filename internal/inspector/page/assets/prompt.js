// A prompt with its sources side by side: every range of bytes has the colour and the number of
// where it came from.

import { bdi, bold, button, bytes, code, count, fill, h, hint, labelChip, muted, note, plural } from "./dom.js";
import { TextView, charAt } from "./text.js";
import { origin } from "./trace.js";

const colors = 10;

export class PromptView {
  // The panel keeps which prompt somebody chose.
  constructor(panel, prompts) {
    const { page, id: task, at, session } = panel;
    Object.assign(this, { panel, page, task, prompts, at });
    this.el = h("div", { class: "prompt" });
    this.texts = [];
    let i = prompts.findIndex((p) => p.attempt === prompts.at(-1).attempt);
    if (at) i = prompts.findIndex((p) => (!at.attempt || p.attempt === at.attempt) && (at.where === "system" ? p.system : p.text).some((x) => x.start <= at.range[0] && x.end > at.range[0]));
    else if (session) i = prompts.findIndex((p) => p.sessionId === session);
    this.show(Math.max(0, i));
  }

  close() { for (const t of this.texts.splice(0)) t.close(); }

  show(i) {
    this.close();
    const p = this.prompts[i];
    this.prompt = p;
    this.number(p);
    this.probe = h("div", { class: "probe", "aria-live": "polite" });
    this.cards = h("div", { class: "sources" });
    const onselect = origin(this.page, this.task);
    const text = (title, pieces) => {
      const size = h("span", { class: "muted num" }, bytes(pieces.reduce((n, x) => n + x.end - x.start, 0)));
      const view = new TextView({ label: title, head: [h("h3", null, title), size], pieces: pieces.map((x) => this.piece(x)), onselect, onhover: (x, _, key) => this.hover(x, key), onpick: (x) => this.pick(x), most: title === "System prompt" ? 10 : 34 });
      this.texts.push(view);
      return h("section", { class: "prompt-part" }, view.el);
    };
    fill(this.el, this.prompts.length > 1 && this.tabs(i), this.bar(p), this.contract(p.contract),
      p.returned && note("Returned to the provider: ", bdi(p.returned.map((r) => `${r.members.join(", ")} of ${r.call ?? "turn " + r.turn}`).join("; "))),
      h("div", { class: "prompt-cols" },
        h("div", { class: "prompt-text" }, p.system?.length > 0 && text("System prompt", p.system), p.text?.length > 0 && text(p.sessionId.includes("/turn/") ? "Added in this turn" : "User message", p.text), this.probe),
        this.cards));
    this.sources(p);
    this.explainProbe();
    if (this.at) this.reveal(this.at, p);
    this.at = null;
  }

  // contract shows what the handshake before the prompt fixed.
  contract(k) {
    const b = k?.bounds;
    return b && hint("Contract: cleared for ", labelChip(b.clearance), ", takes up to ", labelChip(b.maxInput), ", answers up to ", labelChip(b.maxOutput), ", ", k.toolsDisclosed?.length ? ["tools ", bdi(k.toolsDisclosed.join(", "))] : "no tools", b.sessionMs ? `, expires ${b.sessionMs / 1000} s after the call begins` : "", k.requiredTags && [", requires ", k.requiredTags.length > 1 ? "tags " : "tag ", bdi(k.requiredTags.join(", "))], k.taskSummary && [", about ", bdi(k.taskSummary)], k.caller && [", for ", bdi(k.caller)]);
  }

  tabs(current) {
    const holders = new Map(this.prompts.filter((p) => p.contract?.heldBefore).map((p) => [p.sessionId.split("/turn/")[0], p.agent]));
    const name = (p) => {
      let at = "/" + p.task + "/" + p.attempt, start = p.sessionId.split(at)[0] + at, rest = p.sessionId.slice(start.length), who = "", child;
      while ((child = /^\/child\/[^/]+/.exec(rest)?.[0])) {
        rest = rest.slice(child.length);
        start += child;
        who = holders.has(start) ? holders.get(start) : who + child.replaceAll("/", " ");
      }
      return [(p.attempt > 1 || this.prompts.some((q) => q.attempt > 1)) && "attempt " + (p.attempt ?? 1), who.trim(), rest.slice(1).replaceAll("/", " ")].filter(Boolean).join(", ") || "first turn";
    };
    return h("div", { class: "turns", role: "group", "aria-label": "Prompts of the task" }, this.prompts.map((p, i) => button(name(p), () => { Object.assign(this.panel, { session: p.sessionId, at: null }); this.show(i); this.el.querySelector(".turns [aria-pressed=true]")?.focus(); }, { class: "small", "aria-pressed": i === current ? "true" : "false" })));
  }

  // number gives each source that has bytes in the prompt a number, in the order of the prompt.
  number(p) {
    this.numbers = new Map();
    this.sizes = new Map();
    for (const x of [...p.system ?? [], ...p.text ?? []]) {
      if (x.source < 0) continue;
      if (!this.numbers.has(x.source)) this.numbers.set(x.source, this.numbers.size + 1);
      this.sizes.set(x.source, (this.sizes.get(x.source) ?? 0) + x.end - x.start);
    }
  }

  color(source) { return source < 0 ? "cx" : "c" + (this.numbers.get(source) - 1) % colors; }

  piece(x) {
    const cls = (x.source < 0 ? "r-frame" : "r-src " + this.color(x.source)) + (this.lit !== undefined && this.lit !== x.source ? " r-dim" : "");
    const source = this.prompt.sources[x.source];
    if (x.withheld) return { ...x, cls, note: `withheld · ${source?.classification ?? "above your clearance"}`, piece: x };
    return { text: x.words ?? "", source: x.source, cls, badge: x.source >= 0 ? this.numbers.get(x.source) : "", piece: x };
  }

  // bar shows how much of the prompt is from whom.
  bar(p) {
    const parts = [];
    for (const x of [...p.system ?? [], ...p.text ?? []]) {
      const last = parts.at(-1);
      if (last && last.source === x.source) last.n += x.end - x.start;
      else parts.push({ source: x.source, n: x.end - x.start, from: x.from });
    }
    const n = this.numbers.size;
    return h("div", { class: "origin-bar" },
      h("p", null, h("b", { class: "num" }, count(p.bytes)), " bytes from ", h("b", { class: "num" }, plural(n, "source")), ", ", labelChip(p.classification), p.withheld?.length > 0 && [" ", h("span", { class: "tag warn" }, plural(p.withheld.reduce((n, w) => n + (w.paths?.length || !w.text) + !!w.text, 0), "value") + " withheld")]),
      h("div", { class: "bar-track", "aria-hidden": "true" }, parts.map((x) => h("i", { class: "seg " + this.color(x.source), style: { "flex-grow": Math.max(x.n, p.bytes / 250) }, title: x.from, onclick: () => x.source >= 0 && this.flash(x.source), onmouseenter: () => this.light(x.source), onmouseleave: () => this.light(undefined) }))));
  }

  explainProbe() {
    fill(this.probe, muted("Point at a range, or use the arrow keys, to see its source. Select text to follow it back."));
  }

  hover(x, key) {
    if (!x) {
      this.probed = undefined;
      return this.card(undefined);
    }
    const piece = x.piece;
    if (piece === this.probed) return;
    this.probed = piece;
    const s = this.prompt.sources[piece.source], d = s?.decision;
    this.card(piece.source);
    fill(this.probe,
      h("span", { class: "chip " + this.color(piece.source) }, piece.source < 0 ? "·" : String(this.numbers.get(piece.source))),
      h("span", { class: "probe-from" }, piece.source < 0 ? "the words of runteam itself" : bdi(nameOf(piece.from))),
      s && labelChip(d?.labelAfter ?? s.classification),
      muted(piece.part, ", bytes ", count(piece.start), "–", count(piece.end)),
      d ? h("span", null, bdi(d.rule), d.line && [" ", code(d.line)]) : s?.spec && code(s.spec),
      d?.envelope && muted("envelope ", code(short(d.envelope))));
    if (key) this.cards.querySelector(".source.on")?.scrollIntoView({ block: "nearest" });
  }

  card(source) {
    for (const c of this.cards.querySelectorAll(".source")) c.classList.toggle("on", Number(c.dataset.source) === source);
  }

  pick(x) {
    this.cards.querySelector(`.source[data-source="${x.source}"]`)?.scrollIntoView({ block: "nearest" });
  }

  // light dims everything that is not from a source.
  light(source) {
    if (this.lit === source) return;
    this.lit = source;
    for (const t of this.texts) {
      for (const p of t.pieces) p.cls = (p.cls ?? "").replace(" r-dim", "") + (source !== undefined && p.piece.source !== source ? " r-dim" : "");
      t.schedule(true);
    }
    this.card(source ?? this.probed?.source); // the mouse may be in the text already
  }

  // flash scrolls to the next range of a source.
  flash(source) {
    for (const t of this.texts) {
      const mine = t.pieces.filter((p) => p.piece.source === source);
      if (mine.length === 0) continue;
      this.next = this.flashed === source ? ((this.next ?? 0) + 1) % mine.length : Math.max(0, mine.findIndex((p) => p.piece.part === "payload"));
      this.flashed = source;
      const p = mine[Math.min(this.next, mine.length - 1)];
      t.show(p.start, p.end);
      return inSight(t);
    }
  }

  reveal(at, p) {
    const system = at.where === "system", t = this.texts[system || !(p.system?.length > 0) ? 0 : 1] ?? this.texts[0];
    const pos = (byte) => {
      const x = t.pieces.find((q) => q.piece.start <= byte && q.piece.end >= byte && (q.piece.end > byte || byte === at.range[1]));
      return x ? x.note ? x.start : x.start + charAt(x.text, byte - x.piece.start) : 0;
    };
    t.show(pos(at.range[0]), pos(at.range[1]));
    inSight(t);
  }

  sources(p) {
    const order = [...this.numbers.keys()];
    fill(this.cards, h("h3", null, "Sources ", muted(count(order.length))), order.map((i) => this.source(p.sources[i], i)), this.withheld(p), this.absent(p));
  }

  source(s, i) {
    const d = s.decision, from = [...this.prompt.system ?? [], ...this.prompt.text ?? []].find((x) => x.source === i)?.from ?? s.producer;
    const dep = d?.source?.kind === "dependency" || d?.source?.kind === "files" ? d.source.name : "";
    const el = h("div", { class: "source " + this.color(i), data: { source: i }, onmouseenter: () => this.light(i), onmouseleave: () => this.light(undefined) },
      h("div", { class: "source-head" }, h("button", { type: "button", class: "chip " + this.color(i), "aria-label": `Show source ${this.numbers.get(i)} in the prompt`, onclick: () => this.flash(i) }, String(this.numbers.get(i))), bold(nameOf(from)), labelChip(d?.labelAfter ?? s.classification)),
      h("p", { class: "muted num" }, this.sizes.get(i) > 0 && plural(this.sizes.get(i), "byte") + " here", d?.bytesBefore !== undefined && ` · ${bytes(d.bytesBefore)} before the gate`, d?.mode && d.mode !== "full" && " · " + d.mode),
      h("dl", { class: "pairs" }, d ? this.decision(d) : [pair("Written in", s.spec && code(s.spec)), pair("Parameter", s.param && bdi(s.param)), pair("By", bdi(s.producer))]),
      dep && h("p", { class: "source-links" }, button("Open the task", () => this.page.openTask(dep, { tab: "result" }), { class: "link" }), button("Open the handoff", () => this.page.app.go(this.page.edgeLink(dep, this.task)), { class: "link" })));
    return el;
  }

  decision(d) {
    return [
      pair("Rule", [bdi(d.rule), d.line && [" ", code(d.line)]]), pair("Label", d.labelBefore !== d.labelAfter && [d.labelBefore, " → ", d.labelAfter]), pair("By entry", d.entries?.map((e) => `${e.use} by ${e.name}`).join(", ")),
      pair("Redacted", kinds(d.redacted)), pair("Revealed", kinds(d.revealed)), pair("Delivered", d.narrowed && paths(d.kept)), pair("Withheld", d.dropped?.length > 0 && paths(d.dropped)), pair("Envelope", d.envelope && code(short(d.envelope))),
      pair("Cut from", d.cutFrom && bytes(d.cutFrom)), pair("Translated", d.translated && "yes"),
    ];
  }

  withheld(p) {
    if (!p.withheld?.length) return null;
    return [h("h3", null, "Withheld ", muted(count(p.withheld.length))), p.withheld.map((w) => h("div", { class: "source withheld" },
      h("div", { class: "source-head" }, h("span", { class: "chip", "aria-hidden": "true" }, "▒"), bold(w.what.replace(/^of /, "parts of "))),
      h("dl", { class: "pairs" }, pair("Why", w.reason && bdi(w.reason.replaceAll("_", " "))), pair("Rule", [bdi(w.rule), w.line && [" ", code(w.line)]]), pair("Paths", w.paths?.length > 0 && paths(w.paths)), pair("Text", w.text && "the text next to the structured part"), pair("Detail", w.detail && bdi(w.detail)))))];
  }

  absent(p) {
    const a = p.notSent ?? {}, list = [...(a.inputs ?? []).map((x) => ["input " + x.name, x.line, x.classification]), ...(a.results ?? []).map((x) => [x.name || x.title, x.line, null, x.id])];
    if (list.length === 0) return null;
    return h("details", { class: "absent" }, h("summary", null, "Existed, and was not granted ", muted(count(list.length + (a.moreResults ?? 0)))), h("ul", { class: "plain" }, list.map(([name, line, label, id]) => h("li", null, id ? button(name, () => this.page.openTask(id), { class: "link" }) : bdi(name), " ", labelChip(label), line && [" ", code(line)]))), a.moreResults > 0 && note("and " + plural(a.moreResults, "more result")));
  }
}

// inSight scrolls the marked range of a text away from the edges, once it is drawn.
function inSight(t) {
  requestAnimationFrame(() => requestAnimationFrame(() => (t.box.querySelector(".r-mark") ?? t.box).scrollIntoView({ block: "center" })));
}

export function pair(k, v) { return v !== undefined && v !== null && v !== false && v !== "" && h("div", null, h("dt", null, k), h("dd", null, v)); }

export function kinds(c) { return c && Object.entries(c).map(([k, n]) => k + (n > 1 ? " ×" + n : "")).join(", "); }

export function paths(list) {
  if (!list?.length) return "nothing";
  return h("span", { class: "paths" }, list.map((x) => code(x === "" ? "the whole" : x)));
}

// nameOf takes the name of a source out of the description of its decision.
function nameOf(from) { return from.split(/, (?:public|internal|confidential|secret)\b/)[0]; }

function short(envelope) {
  const [id, n] = envelope.split("/");
  return /^[0-9a-f-]{36}$/.test(id) ? id.slice(0, 8) + "…/" + n : envelope;
}
