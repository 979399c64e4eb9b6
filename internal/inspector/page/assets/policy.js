// The policy of a run: what it is, what holds for a pair, and, while the run works, another one.

import { exported, get, getTagged, ofRun, path, send } from "./api.js";
import { bdi, button, code, count, empty, escapeHidden, failure, field, fill, h, hint, loading, muted, section, toast, told } from "./dom.js";
import { pair, paths } from "./prompt.js";
import { textBlock } from "./text.js";

export class PolicyView {
  constructor(page) {
    this.page = page;
    this.base = ofRun(page, "governance", "handoff-rules");
    this.el = h("div", { class: "scroll pad policy" });
    this.load();
  }

  close() { this.view?.close(); }

  // load shows the newest policy, or the earlier one with a digest.
  async load(earlier) {
    fill(this.el, loading("the policy"));
    try {
      const { doc, tag } = await getTagged(this.base + (earlier ? `?policy=${encodeURIComponent(earlier)}` : ""));
      this.earlier = earlier;
      this.doc = doc;
      this.tag = tag || `"${doc.digest}"`;
      this.draw();
    } catch (err) {
      fill(this.el, h("h2", null, "Policy"), failure(err, err.status === 404 ? undefined : () => this.load(earlier)));
    }
  }

  draw() {
    const { digest, policy, rules } = this.doc, text = escapeHidden(JSON.stringify(policy ?? {}, null, 2)), edit = !this.earlier && this.page.state.live && this.page.app.viewer.canSteer;
    this.view?.close();
    this.view = edit ? null : textBlock(text, { label: "The policy", most: 50 });
    fill(this.el,
      h("div", { class: "flow-head" }, h("h2", null, "Policy"), digest && muted("digest ", code(digest.slice(0, 16)))),
      this.others(),
      h("div", { class: "policy-cols" },
        section(["Rules ", muted(count(rules?.length ?? 0))], rules?.length > 0 ? this.rules(rules) : empty("No rules", "A dependency is granted whole; secrets and personal data are redacted everywhere."), !this.earlier && this.ask()),
        section(edit ? "Edit" : "As JSON", edit ? this.editor(text) : [this.view.el, !exported && !this.earlier && hint(this.page.state.live ? "This viewer may only read." : "A policy can be replaced while the run works.")])));
  }

  // others says which policies the run had before, and leads back to the newest one.
  others() {
    const list = this.doc.earlier ?? [];
    if (list.length === 0) return null;
    if (exported) return hint(`This policy replaced ${list.length === 1 ? "another one" : list.length + " others"} while the run worked.`);
    return hint(this.earlier ? ["This policy was replaced. ", button("Show the newest policy", () => this.load(), { class: "link" })] : "This policy holds. ", " Earlier: ",
      list.map((d, i) => [i ? ", " : "", d === this.earlier ? code(d.slice(0, 16)) : button(bdi(d.slice(0, 16)), () => this.load(d), { class: "link" })]));
  }

  rules(rules) {
    return h("ul", { class: "plain rules" }, rules.map((r) => h("li", { class: "source" },
      h("div", { class: "source-head" }, button([bdi(r.from ?? "*"), " → ", bdi(r.to ?? "*")].map((x) => x), () => this.pair(r.from, r.to), { class: "link" }), r.line && code(r.line)),
      h("dl", { class: "pairs" }, pairOf(r)))));
  }

  ask() {
    const names = [...new Set(this.page.state.order.map((t) => t.assignee).filter(Boolean))], option = (a) => h("option", { value: a }, a);
    if (names.length === 0 || exported) return null;
    const from = h("select", { id: "pair-from", "aria-label": "From" }, [...names, "user"].map(option)), to = h("select", { id: "pair-to", "aria-label": "To" }, [...names, "user"].map(option));
    this.answer = h("div", { class: "pair-answer", role: "status" });
    return h("div", null, h("h3", null, "What holds for a pair?"), h("div", { class: "toolbar" }, from, h("span", null, "→"), to, button("Show", () => this.pair(from.value, to.value), { class: "small" })), this.answer);
  }

  async pair(from, to) {
    if (!this.answer) return;
    try {
      const p = await get(this.base + path(from, to));
      fill(this.answer, h("div", { class: "source" }, h("div", { class: "source-head" }, h("b", null, bdi(p.from), " → ", bdi(p.to))), h("dl", { class: "pairs" }, pairOf(p), pair("From rules", p.rules?.length > 0 && p.rules.map((r, i) => [i ? ", " : "", bdi(r.id), r.line && [" ", code(r.line)]])))));
    } catch (err) {
      fill(this.answer, failure(err));
    }
    this.answer.scrollIntoView({ block: "nearest" });
  }

  editor(text) {
    const area = h("textarea", { id: "policy-json", class: "mono", rows: Math.min(44, text.split("\n").length + 3), spellcheck: "false", "aria-describedby": "policy-about", value: text });
    const reason = h("input", { id: "policy-reason", type: "text", autocomplete: "off" });
    this.status = h("div", { role: "alert" });
    const form = h("form", { class: "form" },
      h("p", { class: "muted hint", id: "policy-about" }, "In the form of the spec's policy, as YAML or JSON. It is checked against everything that has not completed; if anything is wrong, nothing changes."),
      field("policy-json", "Policy (YAML or JSON)", area), field("policy-reason", "Why? (kept with the command)", reason), this.status,
      h("footer", null, button("Undo", () => { area.value = text; fill(this.status); }), h("button", { type: "submit", class: "primary" }, "Replace the policy")));
    form.addEventListener("submit", (e) => { e.preventDefault(); this.put(area, reason.value); });
    return form;
  }

  async put(area, reason) {
    try {
      await send("PUT", this.base, { text: area.value, ...(reason ? { reason } : {}) }, { "If-Match": this.tag });
      toast("The policy holds from the next decision on");
      this.load();
    } catch (err) {
      fill(this.status, told(err, (p) => goTo(area, p)),
        err.status === 412 && h("p", null, "Somebody else replaced the policy. ", button("Read it again (your text is lost)", () => this.load(), { class: "small" })));
    }
  }
}

function pairOf(r) {
  const kinds = (c) => c && Object.keys(c).length > 0 && Object.entries(c).map(([k, p], i) => [i ? ", " : "", bdi(k), " at ", paths(Array.isArray(p) ? p : [String(p)])]);
  return [pair("Mode", r.mode), pair("Allow", r.allow?.length > 0 && paths(r.allow)), pair("Block", r.block?.length > 0 && paths(r.block)), pair("At most", r.maxClassification), pair("Redact", r.redact?.length > 0 && paths(r.redact)), pair("Reveal", kinds(r.reveal)), pair("Declassify", r.declassify?.length > 0 && paths(r.declassify.map((x) => x.name ?? String(x))))];
}

// goTo selects the place of a problem: a line of a text, or what a JSON pointer names in one that is JSON.
function goTo(area, { line, pointer }) {
  const text = area.value, at = line ? lineAt(text, line) : locate(text, pointer.replace(/^\/policy(?=\/)/, "").split("/").slice(1).map((x) => x.replaceAll("~1", "/").replaceAll("~0", "~")));
  if (!at) return;
  area.focus();
  area.setSelectionRange(...at);
  area.scrollTop = (text.slice(0, at[0]).split("\n").length - 4) * parseFloat(getComputedStyle(area).lineHeight);
}

// lineAt returns where a line begins and ends.
function lineAt(text, line) {
  const lines = text.split("\n"), from = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  return [from, from + (lines[line - 1] ?? "").length];
}

// locate returns where the value at a path of keys begins and ends, or of its nearest parent.
export function locate(text, keys) {
  let i = 0, found = null;
  const space = () => { while (/\s/.test(text[i] ?? "")) i++; };
  const string = () => {
    const from = i++;
    while (i < text.length && text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
    i++;
    return JSON.parse(text.slice(from, i));
  };
  const value = (depth, on) => {
    space();
    const from = i, open = text[i];
    if (open === "{" || open === "[") {
      i++;
      for (let n = 0; ; n++) {
        space();
        if (i >= text.length || text[i] === "}" || text[i] === "]") { i++; break; }
        let key = String(n);
        if (open === "{") { key = string(); space(); i++; }
        value(depth + 1, on && key === keys[depth]);
        space();
        if (text[i] === ",") i++;
      }
    } else if (open === '"') string();
    else while (i < text.length && !/[\s,\]}]/.test(text[i])) i++;
    if (on && (!found || depth > found[2])) found = [from, i, depth];
  };
  try { value(0, true); } catch { return null; }
  return found?.slice(0, 2);
}
