// Answers, in a frame that says who wrote them: rendered if they are Markdown, with their source one click away.

import { get } from "./api.js";
import { bold, button, copyable, fill, h, labelChip, shown, toast } from "./dom.js";
import { textBlock } from "./text.js";

const thisComputer = /^(?:(?:.+\.)?localhost\.?|127(?:\.\d+){3}|0\.0\.0\.0|\[::(?:1|ffff:7f[0-9a-f]{2}:[0-9a-f]+)?\])$/;

// linkTo returns the address that a target of an answer leads to, or null if it is shown as a text: it must be on another
// computer than this page, and name its reader to nobody.
function linkTo(target) {
  let url;
  try { url = new URL(target); } catch { return null; }
  if (url.protocol === "mailto:") return url.href;
  const elsewhere = url.hostname !== location.hostname && !thisComputer.test(url.hostname);
  return /^https?:$/.test(url.protocol) && elsewhere && !url.username && !url.password ? url.href : null;
}

function link(n) {
  const to = linkTo(n.target), words = n.nodes?.length > 0 ? nodes(n) : shown(n.target ?? "");
  if (!to) return [words, h("span", { class: "md-target" }, " (", shown(n.target ?? ""), ")")];
  const same = n.nodes?.length === 1 && n.nodes[0] === to;
  return [h("a", { href: to, rel: "noreferrer noopener", referrerpolicy: "no-referrer", target: "_blank" }, words), !same && h("span", { class: "md-target" }, " (", to, ")")];
}

function table(n) {
  const row = (r, tag) => h("tr", null, (r.nodes ?? []).map((c) => h(tag, { class: c.align === "right" ? "right" : c.align === "center" && "center" }, nodes(c))));
  const [head, ...rows] = n.nodes ?? [];
  return h("div", { class: "md-table" }, h("table", null, head && h("thead", null, row(head, "th")), h("tbody", null, rows.map((r) => row(r, "td")))));
}

const makers = {
  paragraph: (n) => h("p", null, nodes(n)),
  heading: (n) => h("p", { class: "md-heading" + (n.level === 1 ? " md-h1" : n.level === 2 ? " md-h2" : "") }, nodes(n)), // no heading of the page
  quote: (n) => h("blockquote", null, nodes(n)),
  code: (n) => h("pre", null, h("code", null, shown(n.text ?? ""))),
  rule: () => h("hr"),
  list: (n) => h("ul", null, nodes(n)),
  ordered: (n) => h("ol", { start: Math.floor(Number(n.first)) || 0 }, nodes(n)),
  item: (n) => h("li", null, nodes(n)),
  table,
  literal: (n) => h("code", null, shown(n.text ?? "")),
  emphasis: (n) => h("em", null, nodes(n)),
  strong: (n) => h("strong", null, nodes(n)),
  deleted: (n) => h("s", null, nodes(n)),
  link,
  image: (n) => h("span", { class: "md-image" }, "image: ", nodes(n), h("span", { class: "md-target" }, " (", shown(n.target ?? ""), ")")),
};

// nodes makes the elements of the nodes in a node; a string is a text.
function nodes(n) { return (n.nodes ?? []).map((x) => typeof x === "string" ? shown(x) : Object.hasOwn(makers, x.kind) ? makers[x.kind](x) : h("span", null, nodes(x))); }

// copied puts the selected text into the clipboard as it was written, with the characters that marks stand for.
function copied(e) {
  const sel = document.getSelection(), marks = [...e.currentTarget.querySelectorAll(".r-ctl")].filter((m) => sel.containsNode(m, true)), symbols = marks.map((m) => m.textContent);
  for (const m of marks) m.firstChild.data = m.hides;
  const text = sel.toString();
  marks.forEach((m, i) => { m.firstChild.data = symbols[i]; });
  if (text === "") return;
  e.clipboardData.setData("text/plain", copyable(text));
  e.preventDefault();
}

// selectAll selects all of an answer, and nothing around it.
function selectAll(e) {
  if (e.key !== "a" || !(e.ctrlKey || e.metaKey)) return;
  e.preventDefault();
  document.getSelection().selectAllChildren(e.currentTarget);
}

const flat = (text) => text.replace(/\s+/g, " ").trim();

// about says who wrote a text, and its label.
function about(by, label) { return [by.length > 0 && [" by ", by.map((x, i) => [i > 0 && ", ", bold(x)])], " ", labelChip(label)]; }

// part shows one of the results in an answer below its title, in a frame of its own.
function part(x) {
  return h("section", { class: "md-part" }, h("header", null, bold(x.title ?? ""), about([x.by ?? []].flat(), x.label)),
    h("div", null, x.blocks?.length > 0 ? nodes({ nodes: x.blocks }) : h("p", null, shown(x.text ?? ""))));
}

// answerBlock shows an answer whose blocks are at a path of the API. It returns its text view. With source, it begins with
// the source, as after somebody chose that.
export function answerBlock(page, text, { label, path, most, onselect, source }) {
  const who = h("span"), md = h("div", { class: "md", tabindex: "0", role: "document", "aria-label": label, hidden: true, oncopy: copied, onkeydown: selectAll });
  const { store } = page.app;
  const swap = button("Source", () => {
    show(md.hidden);
    store.set("source", md.hidden ? "1" : "");
  }, { class: "small", hidden: true });
  const follow = onselect && ((words, rect, now) => {
    if (md.hidden || flat(text).includes(flat(words))) return onselect(words, rect, now);
    if (!now) return;
    show(false);
    toast("There are marks of Markdown in this text: select it in the source");
  });
  const view = textBlock(text, { label, head: [label, who], tools: swap, most, onselect: follow });
  const show = (rendered) => {
    md.hidden = !rendered;
    view.box.hidden = rendered;
    fill(swap, rendered ? "Source" : "Rendered");
  };
  view.el.append(md);
  view.rendered = md;
  view.box.hidden = true; // until it is known how it is shown
  const draw = (of) => {
    const parts = of.parts ?? [of];
    fill(who, about([of.by ?? []].flat(), of.label));
    fill(md, of.parts?.some((x) => x.title) ? parts.map(part) : nodes({ nodes: parts[0]?.blocks }));
    swap.hidden = !parts.some((x) => x.blocks?.length > 0);
    show(!swap.hidden && !source && !store.get("source"));
  };
  get(path).then(draw, () => draw({}));
  return view;
}
