// Who could ever see what: a matrix of sources and readers, with the way of each cell.

import { exported, get, ofRun } from "./api.js";
import { bdi, bold, code, count, dialog, empty, failure, fill, h, hint, labelChip, loading, muted, note } from "./dom.js";

const signs = { whole: ["●", "all of it"], part: ["◐", "parts of it"], derived: ["○", "only text derived from it"], never: ["", "never"], wrote: ["=", "wrote it"] };

export class FlowView {
  constructor(page) {
    this.page = page;
    this.el = h("div", { class: "scroll pad flow" });
    this.load();
  }

  async load() {
    fill(this.el, loading("the flow"));
    try {
      this.doc = await get(ofRun(this.page, "flow"));
      this.draw();
    } catch (err) {
      fill(this.el, h("h2", null, "Who can see what"), failure(err, err.status === 404 && !this.page.state.live ? undefined : () => this.load())); // a plan may come
    }
  }

  draw() {
    const { readers, sources, assertions, policyDigest } = this.doc;
    if (!sources?.length) return fill(this.el, empty("Nothing flows in this run"));
    fill(this.el,
      h("div", { class: "flow-head" }, h("h2", null, "Who can see what"), h("p", { class: "key" }, Object.entries(signs).map(([k, [g, text]]) => h("span", { class: "f-" + k }, h("i", { "aria-hidden": "true" }, g || "·"), " ", text)))),
      hint("Computed from the plan, its labels and the policy", policyDigest && [" ", code(policyDigest.slice(0, 16))], ". Open a cell to see why."),
      this.assertions(assertions ?? []), this.matrix(readers, sources));
  }

  assertions(list) {
    if (list.length === 0) return null;
    return h("section", { class: "assertions" }, h("h3", null, "Assertions ", muted(count(list.filter((a) => a.holds).length) + " of " + count(list.length) + " hold")),
      h("ul", { class: "plain" }, list.map((a) => h("li", { class: a.holds ? "holds" : "broken" }, h("span", { class: "mark" }, a.holds ? "✓ holds" : "✕ broken"), " ", bdi(a.text), a.line && [" ", code(a.line)], a.why && note(bdi(a.why)), !a.holds && a.path && wayList(a.path)))));
  }

  matrix(readers, sources) {
    const rows = sources.map((s, i) => h("tr", null, h("th", { scope: "row" }, muted(s.kind === "dependency" ? "" : s.kind + " "), bdi(s.name), s.rounds > 1 && muted(" ×" + s.rounds), " ", labelChip(s.label)), readers.map((r, k) => h("td", { class: "f-" + this.kind(s, k) }, this.cell(s, i, r, k)))));
    const table = h("table", { class: "matrix" }, h("caption", { class: "sr" }, "Sources in rows, readers in columns"),
      h("thead", null, h("tr", null, h("th", { scope: "col", class: "corner" }, "Source \\ reader"), readers.map((r) => h("th", { scope: "col" }, h("span", null, bdi(r.kind === "endpoint" ? r.name.replace(/^https?:\/\//, "") : r.name.replace(/^tool:/, "")), muted(" " + r.clearance)))))),
      h("tbody", null, rows));
    table.addEventListener("keydown", (e) => move(table, e));
    return h("div", { class: "matrix-scroll" }, table);
  }

  kind(s, k) { return (s.reach[k] === "never" || s.reach[k] === "derived") && s.wrote?.includes(k) ? "wrote" : s.reach[k]; }

  cell(s, i, r, k) {
    const kind = this.kind(s, k), [glyph, text] = signs[kind];
    return h("button", { type: "button", class: "cell", tabindex: i === 0 && k === 0 ? 0 : -1, "aria-label": `${s.name} to ${r.name}: ${text}. Why?`, title: `${s.name} → ${r.name}: ${text}`, onclick: () => this.why(s, r, k, text) }, glyph || "·");
  }

  async why(s, r, k, text) {
    const body = h("div", { class: "pad" }, loading("the way"));
    dialog(`Why? ${s.name} → ${r.name}`, body, { class: "sheet" });
    const head = h("p", null, bold(r.name), ` (${r.kind}, clearance ${r.clearance}) sees `, h("b", null, text), " of ", bold(s.name), " ", labelChip(s.label), ".");
    try {
      const way = exported ? s.ways?.[k] : await this.way(s, r);
      fill(body, head, way ? [h("h3", null, "The way"), wayList(way, this.page)] : note(exported ? "The exported file has no ways; runteam plan --from shows them." : "No path of edges leads there: no task that this reader reads, writes or carries depends on it in a way that lets it pass."));
    } catch (err) {
      fill(body, head, failure(err));
    }
  }

  async way(s, r) {
    const name = (s.kind === "dependency" ? "task " : s.kind === "input" ? "input " : "") + s.name;
    const doc = await get(ofRun(this.page, "flow") + `?from=${encodeURIComponent(name)}&to=${encodeURIComponent(r.name)}`);
    const row = doc.sources[0], k = doc.readers.findIndex((x) => x.name === r.name);
    return row?.ways?.[Math.max(0, k)];
  }
}

// wayList shows the steps of a path with the rule of each.
function wayList(steps, page) {
  return h("ol", { class: "way" }, steps.map((st) => {
    const t = page && st.kind === "task" && page.state.find(st.name);
    return h("li", null, h("div", null, muted(st.kind === "dependency" ? "result" : st.kind, " "), t ? h("a", { href: page.taskLink(t.id), onclick: (e) => e.target.closest("dialog")?.close() }, bdi(st.name)) : bold(st.name), (st.rule || st.line || st.note) && h("div", { class: "from muted" }, st.rule && ["rule ", bdi(st.rule), " "], st.line && code(st.line), st.note && [" ", bdi(st.note)])));
  }));
}

function move(table, e) {
  const cell = e.target.closest("td");
  if (!cell) return;
  const row = cell.parentElement, i = [...row.children].indexOf(cell);
  const next = { ArrowRight: cell.nextElementSibling, ArrowLeft: cell.previousElementSibling, ArrowDown: row.nextElementSibling?.children[i], ArrowUp: row.previousElementSibling?.children[i] };
  if (!(e.key in next)) return;
  const b = next[e.key]?.querySelector("button");
  e.preventDefault();
  if (!b) return;
  e.target.tabIndex = -1;
  b.tabIndex = 0;
  b.focus();
}

