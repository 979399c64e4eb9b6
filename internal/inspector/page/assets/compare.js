// Two runs: which prompts, results and costs differ.

import { exported, get, ofRun, path } from "./api.js";
import { bdi, button, code, compact, count, empty, failure, fill, h, heads, labelChip, loading, short, statusWord } from "./dom.js";

export class CompareView {
  constructor(page) {
    this.page = page;
    this.result = h("div");
    this.form = h("div", { class: "toolbar" });
    this.el = h("div", { class: "scroll pad compare" }, h("h2", null, "Compare"), this.form, this.result);
    if (exported) fill(this.result, empty("An exported file holds one run", "runteam serve compares two."));
    else this.choose();
  }

  async choose() {
    try {
      const { runs } = await get("/runs?limit=100"), mine = this.page.state.doc.name;
      const others = runs.filter((r) => r.runId !== this.page.id).sort((a, b) => (b.name === mine) - (a.name === mine));
      const pick = h("select", { id: "compare-with" }, others.map((r) => h("option", { value: r.runId }, `${r.name || "run"} ${short(r.runId)}, ${r.startedAt.slice(0, 16).replace("T", " ")}`)));
      this.pick = pick;
      if (this.other) this.name(this.other);
      fill(this.form, h("label", { for: "compare-with" }, "With"), pick, button("Compare", () => this.page.app.go(this.page.link("compare") + "/" + encodeURIComponent(pick.value)), { class: "small primary" }));
      if (!this.other) fill(this.result, empty(others.length ? "Choose what to compare with" : "There is no other run", "Another run of the same spec shows what a change did."));
    } catch (err) {
      fill(this.result, failure(err, () => this.choose()));
    }
  }

  async go([other]) {
    if (!other || other === this.other || exported) return;
    this.other = other;
    this.name(other);
    fill(this.result, loading("the comparison"));
    try {
      this.draw(await get(ofRun(this.page, "compare", other)));
    } catch (err) {
      fill(this.result, failure(err, () => { this.other = ""; this.go([other]); }));
    }
  }

  // name chooses the run in the form, by its ID or the beginning of it.
  name(id) {
    const { pick } = this;
    if (pick) ([...pick.options].find((o) => o.value.startsWith(id)) ?? pick.appendChild(h("option", { value: id }, short(id)))).selected = true;
  }

  draw(doc) {
    const other = doc.before.runId === this.page.state.id ? doc.after.runId : doc.before.runId;
    const tasks = doc.tasks ?? [], differ = tasks.filter((t) => !same(t));
    const sum = (side) => tasks.reduce((n, t) => n + total(t[side]), 0);
    fill(this.result,
      h("p", { class: "verdict-line " + (doc.equal ? "holds" : "broken") }, h("b", null, doc.equal ? "Equal" : "They differ"), doc.equal ? ` in all ${count(tasks.length)} tasks. ` : ` in ${count(differ.length)} of ${count(tasks.length)} tasks. `, "With run ", code(short(other)), ". ", h("span", { class: "muted num" }, "Tokens ", compact(sum("before")), " → ", compact(sum("after")))),
      h("table", { class: "grid compare-table" }, heads(["Task", "Prompt", "Result", "State", "Label", "Tokens"]),
        h("tbody", null, [...differ, ...tasks.filter(same)].map((t) => this.row(t, doc)))));
  }

  row(t, doc) {
    const b = t.before, a = t.after, changed = t.result === "changed" || t.prompt === "changed";
    const detail = changed && h("tr", { class: "detail", hidden: true }, h("td", { colspan: 6 }));
    const more = changed && button("differences", (e) => this.open(t, doc, detail, e.target), { class: "link", "aria-expanded": "false", "aria-label": "Differences of " + t.title });
    return [h("tr", { class: same(t) ? "same" : "" }, h("td", null, h("a", { href: this.page.taskLink(t.id) }, bdi(t.name || t.title)), " ", more, t.leftOut && h("span", { class: "tag" }, "omitted")),
      h("td", null, word(t.prompt)), h("td", null, word(t.result)), h("td", null, !b ? "only after" : !a ? "only before" : b.status === a.status ? statusWord(a.status) : statusWord(b.status) + " → " + statusWord(a.status)),
      h("td", null, labelChip(b?.label), a?.label && a.label !== b?.label && [" → ", labelChip(a.label)]), h("td", { class: "num" }, total(b) === total(a) ? compact(total(a)) : compact(total(b)) + " → " + compact(total(a)))), detail];
  }

  async open(t, doc, detail, b) {
    detail.hidden = !detail.hidden;
    b.setAttribute("aria-expanded", String(!detail.hidden));
    const td = detail.firstChild;
    if (td.firstChild) return;
    fill(td, t.result === "changed" && [h("h3", null, "Result"), diffView(t.before?.text ?? "", t.after?.text ?? "")]);
    if (t.prompt !== "changed") return;
    const wait = td.appendChild(loading("the prompts"));
    try {
      const [x, y] = await Promise.all([doc.before.runId, doc.after.runId].map((id) => get(path("runs", id, "receipts") + "?task=" + encodeURIComponent(t.id))));
      wait.replaceWith(h("h3", null, "Prompt"), diffView(words(x), words(y)));
    } catch (err) {
      wait.replaceWith(failure(err));
    }
  }
}

const total = (s) => (s?.tokenUsage?.input_tokens ?? 0) + (s?.tokenUsage?.output_tokens ?? 0);
const same = (t) => t.before && t.after && t.before.status === t.after.status && t.before.label === t.after.label && t.prompt !== "changed" && t.result !== "changed";
const word = (x) => h("span", { class: "diff-" + x }, { same: "= same", changed: "≠ changed", withheld: "▒ withheld" }[x] ?? "–");
// Fences have random numbers; they are no difference.
const words = (doc) => (doc.prompts ?? []).map((p) => [...p.system ?? [], ...p.text ?? []].map((x) => x.words ?? "[withheld]").join("")).join("\n\n").replace(/\[(\/?)envelope [0-9a-f]{32}/g, "[$1envelope");

// diffView shows two texts line by line with what is gone and what is new.
function diffView(a, b) {
  const lines = diff(a.split("\n"), b.split("\n")), out = [];
  lines.forEach(([sign, line], i) => {
    if (sign === " " && !lines.slice(Math.max(0, i - 2), i + 3).some(([s]) => s !== " ")) {
      if (out.at(-1)?.className !== "d-gap") out.push(h("div", { class: "d-gap" }, "⋯"));
      return;
    }
    out.push(h("div", { class: sign === "-" ? "d-old" : sign === "+" ? "d-new" : "d-same" }, h("span", { class: "d-sign" }, sign), bdi(line)));
  });
  return h("div", { class: "diff", tabindex: "0", role: "group", "aria-label": "Differences, line by line" }, out.slice(0, 2000));
}

// diff returns the lines of both texts in order, each with its sign.
export function diff(a, b) {
  let from = 0, aEnd = a.length, bEnd = b.length;
  while (from < aEnd && from < bEnd && a[from] === b[from]) from++;
  while (aEnd > from && bEnd > from && a[aEnd - 1] === b[bEnd - 1]) { aEnd--; bEnd--; }
  const x = a.slice(from, aEnd), y = b.slice(from, bEnd), out = a.slice(0, from).map((l) => [" ", l]);
  if (x.length * y.length > 4e6) out.push(...x.map((l) => ["-", l]), ...y.map((l) => ["+", l]));
  else {
    const w = y.length + 1, t = new Uint32Array((x.length + 1) * w);
    for (let i = x.length - 1; i >= 0; i--) for (let j = y.length - 1; j >= 0; j--) t[i * w + j] = x[i] === y[j] ? t[(i + 1) * w + j + 1] + 1 : Math.max(t[(i + 1) * w + j], t[i * w + j + 1]);
    let i = 0, j = 0;
    while (i < x.length || j < y.length) {
      if (i < x.length && j < y.length && x[i] === y[j]) { out.push([" ", x[i++]]); j++; }
      else if (i < x.length && (j >= y.length || t[(i + 1) * w + j] >= t[i * w + j + 1])) out.push(["-", x[i++]]);
      else out.push(["+", y[j++]]);
    }
  }
  return out.concat(a.slice(aEnd).map((l) => [" ", l]));
}
