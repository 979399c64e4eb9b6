// Elements and texts. Text gets into the page here and nowhere else: as text nodes, with
// characters that could deceive a reader replaced by visible ones.

const svgNS = "http://www.w3.org/2000/svg";

// Controls, bidirectional controls, zero-width characters, tags and lone surrogates.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function symbolOf(c) {
  const n = c.codePointAt(0);
  if (n < 0x20) return String.fromCharCode(0x2400 + n);
  if (n === 0x7f) return "\u2421";
  return "‹U+" + n.toString(16).toUpperCase().padStart(4, "0") + "›";
}

// visible returns a text with every hidden character made visible.
export function visible(text) {
  return String(text ?? "").replace(hidden, symbolOf);
}

// copyable returns a text as the clipboard gets it. Controls, with which a text could act in the terminal that it is
// pasted into, are copied as the symbols that the page shows. All else stays, since scripts and emojis need joiners and
// marks of direction.
export function copyable(text) { return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, symbolOf); }

// copy puts a text into the clipboard.
export async function copy(text) {
  const safe = copyable(text);
  try {
    await navigator.clipboard.writeText(safe);
    toast(safe === text ? "Copied" : "Copied, with control characters as symbols");
  } catch {
    toast("The browser does not let this page copy: click the text, and press Ctrl-A and Ctrl-C", true);
  }
}

// escapeHidden writes the hidden characters of a JSON text as escapes, which mean the same.
export function escapeHidden(json) {
  return json.replace(hidden, (c) => c === "\r" ? c : [...Array(c.length).keys()].map((i) => "\\u" + c.charCodeAt(i).toString(16).padStart(4, "0")).join(""));
}

// splitHidden yields the parts of a text: [text, false], or [character, true] for a hidden one.
export function splitHidden(text) {
  const parts = [];
  let at = 0;
  for (const m of text.matchAll(hidden)) {
    if (m.index > at) parts.push([text.slice(at, m.index), false]);
    parts.push([m[0], true]);
    at = m.index + m[0].length;
  }
  if (at < text.length) parts.push([text.slice(at), false]);
  return parts;
}

// shown makes the nodes of a text that somebody else wrote: hidden characters are marks, which know what they stand for.
export function shown(text) {
  return splitHidden(text).map(([part, special]) => {
    if (!special) return document.createTextNode(part);
    const mark = h("span", { class: "r-ctl", title: "a hidden character" }, symbolOf(part));
    mark.hides = part;
    return mark;
  });
}

function set(el, props) {
  for (const key in props) {
    const value = props[key];
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) el.addEventListener(key.slice(2), value);
    else if (key === "style") for (const k in value) el.style.setProperty(k, value[k]);
    else if (key === "value") el.value = value;
    else if (key === "data") for (const k in value) el.dataset[k] = value[k];
    else el.setAttribute(key, value === true ? "" : visible(value));
  }
}

function add(el, children) {
  for (const c of children.flat(Infinity)) {
    if (c === undefined || c === null || c === false || c === "") continue;
    el.append(c instanceof Node ? c : document.createTextNode(visible(c)));
  }
}

// h makes an HTML element. A child is a node, a text or a list.
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  set(el, props);
  add(el, children);
  return el;
}

// s makes an SVG element.
export function s(tag, props, ...children) {
  const el = document.createElementNS(svgNS, tag);
  set(el, props);
  add(el, children);
  return el;
}

// clicks calls f for each click in an element. A browser has no click of what was drawn again between
// press and release, as a node of a live graph may be; that is one, too.
export function clicks(el, f) {
  el.addEventListener("click", f);
  el.addEventListener("pointerdown", (down) => {
    if (down.button !== 0) return;
    addEventListener("pointerup", (up) => {
      if (down.target.isConnected || up.pointerId !== down.pointerId || Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY) > 4) return;
      const target = document.elementFromPoint(up.clientX, up.clientY);
      if (el.contains(target)) f({ target, clientX: up.clientX, clientY: up.clientY });
    }, { once: true });
  });
}

// bdi isolates a text that somebody else wrote from the text around it.
export function bdi(text, cls) { return h("bdi", { class: cls }, text); }

export function code(text) { return h("code", null, bdi(text)); }

// muted is a text beside what matters.
export function muted(...text) { return h("span", { class: "muted" }, text); }

// bold is a name that somebody else wrote, note and hint a paragraph beside what matters, section one with its title.
export function bold(text) { return h("b", null, bdi(text)); }

export function note(...text) { return h("p", { class: "muted" }, text); }

export function hint(...text) { return h("p", { class: "muted hint" }, text); }

export function section(title, ...more) { return h("section", null, h("h3", null, title), more); }

// fill replaces the children of an element.
export function fill(el, ...children) {
  el.replaceChildren();
  add(el, children);
  return el;
}

// change sets the text of an element if it differs.
export function change(el, text) {
  text = visible(text);
  if (el.textContent !== text) el.textContent = text;
}

const number = new Intl.NumberFormat("en-US");

export function count(n) { return number.format(n ?? 0); }

export function plural(n, word, many) { return count(n) + " " + (n === 1 ? word : many ?? word + "s"); }

// compact writes 1,234 as 1.2k.
export function compact(n) {
  n = n ?? 0;
  if (n < 1000) return String(n);
  if (n < 99950) return (n / 1000).toFixed(1) + "k";
  if (n < 999500) return Math.round(n / 1000) + "k";
  return (n / 1e6).toFixed(n < 1e7 ? 2 : 1) + "M";
}

export function inOut(u, f = compact) { return f(u?.input_tokens) + " in, " + f(u?.output_tokens) + " out"; }

export function bytes(n) {
  if (n < 1024) return n + " B";
  if (n < 1048576) return (n / 1024).toFixed(n < 10240 ? 1 : 0) + " KiB";
  return (n / 1048576).toFixed(1) + " MiB";
}

export function duration(ms) {
  if (!(ms >= 0)) return "";
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
  const m = Math.floor(ms / 60000);
  if (m < 60) return m + "m " + String(Math.floor(ms / 1000) % 60).padStart(2, "0") + "s";
  return Math.floor(m / 60) + "h " + String(m % 60).padStart(2, "0") + "m";
}

export function money(cost) {
  if (cost === undefined || cost === null || cost === "") return "";
  const n = Number(String(cost).replace(/[^0-9.eE-]/g, ""));
  if (!Number.isFinite(n)) return String(cost);
  return "$" + (n === 0 ? "0" : n < 0.01 ? n.toFixed(5) : n < 1 ? n.toFixed(4) : n.toFixed(2));
}

export function ago(time) {
  const sec = (Date.now() - Date.parse(time)) / 1000;
  if (!(sec >= 0)) return "now";
  if (sec < 5) return "just now";
  if (sec < 60) return Math.floor(sec) + " s ago";
  if (sec < 3600) return Math.floor(sec / 60) + " min ago";
  if (sec < 86400) return Math.floor(sec / 3600) + " h ago";
  return new Date(time).toISOString().slice(0, 10);
}

export function clock(time) {
  const d = new Date(time);
  return Number.isNaN(+d) ? "" : d.toTimeString().slice(0, 8) + "." + String(d.getMilliseconds()).padStart(3, "0");
}

export function short(id) { return String(id).slice(0, 8); }

const shapes = {
  public: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9zm0 1.6a2.9 2.9 0 1 1 0 5.8a2.9 2.9 0 1 1 0-5.8z",
  internal: "M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
  confidential: "M6 .6L11.4 6L6 11.4L.6 6z",
  secret: "M6 .8L11.6 10.8H.4z",
};

export const labels = Object.keys(shapes);

export function labelShape(label, props) {
  return s("path", { d: shapes[label] ?? shapes.secret, ...props });
}

// labelChip shows a label by its name, a shape and a colour.
export function labelChip(label) {
  if (!label) return null;
  return h("span", { class: "label l-" + label, title: "label: " + label },
    s("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, labelShape(label)), label);
}

const marks = {
  completed: "M3 6.2l2.2 2.3L9.2 4",
  failed: "M3.5 3.5l5 5M8.5 3.5l-5 5",
  skipped: "M3.2 6h5.6", cancelled: "M3.2 6h5.6", not_needed: "M4 6h4",
  waiting: "M4.5 3.8v4.4M7.5 3.8v4.4",
};
export function statusWord(status) { return { in_progress: "running", accepted: "failed (accepted)" }[status] ?? String(status ?? "").replaceAll("_", " "); }

export function statusClass(status) {
  switch (status) {
    case "ok": case "completed": return "ok";
    case "error": case "failed": case "timeout": case "budget_exhausted": return "bad";
    case "running": case "in_progress": return "run";
    case "suspended": case "waiting": case "paused": case "interrupted": case "queued": case "set aside": return "wait";
  }
  return "idle";
}

// statusIcon draws a state: each has its own shape.
export function statusIcon(status, props) {
  const name = /^(pending|blocked|ready|skipped|not_needed|cancelled)$/.test(status) ? status : { ok: "completed", bad: "failed", run: "in_progress", wait: "waiting" }[statusClass(status)] ?? "pending";
  const g = s("svg", { viewBox: "0 0 12 12", class: "st st-" + name, "aria-hidden": "true", ...props });
  g.append(s("circle", { cx: 6, cy: 6, r: 5, class: "ring" }));
  if (name === "in_progress") g.append(s("path", { d: "M6 1a5 5 0 0 1 5 5", class: "spin" }), s("circle", { cx: 6, cy: 6, r: 1.8, class: "dot" }));
  if (name === "ready") g.append(s("circle", { cx: 6, cy: 6, r: 1.8, class: "dot" }));
  if (marks[name]) g.append(s("path", { d: marks[name], class: "mark" }));
  return g;
}

export function statusChip(status, text) {
  return h("span", { class: "status s-" + statusClass(status) }, statusIcon(status), text ? bdi(text) : statusWord(status));
}

export function button(text, onclick, props) {
  return h("button", { type: "button", onclick, ...props }, text);
}

export function empty(title, ...more) {
  return h("div", { class: "empty", role: "status" }, h("p", { class: "empty-title" }, title), more.length > 0 && h("p", null, ...more));
}

export function loading(what) {
  return h("div", { class: "loading", role: "status" }, h("span", { class: "bar" }), h("span", { class: "sr" }, "Loading " + what + "…"));
}

// told says an error of the API, with its hint and its problems.
export function told(err, onclick) {
  return [h("p", { class: "failure-title" }, bdi(err.message)), err.hint && h("p", null, bdi(err.hint)), problems(err.problems, onclick)];
}

// failure shows an error with a way to try again.
export function failure(err, again) {
  return h("div", { class: "failure", role: "alert" }, told(err), again && (err.status === 401 ? button("Reload the page", () => location.reload(), { class: "small" }) : button("Try again", again, { class: "small" })));
}

// field is a part of a form with its title; heads are the titles of columns, those of right on the right.
export function field(id, title, ...input) { return h("div", { class: "field" }, h("label", { for: id }, title), input); }

export function heads(titles, right) {
  return h("thead", null, h("tr", null, titles.map((x, i) => h("th", { scope: "col", class: right?.includes(i) && "right" }, x))));
}

function problems(list, onclick) {
  if (!list?.length) return null;
  return h("ul", { class: "problems" }, list.map((p) => h("li", null,
    placeOf(p) && (onclick ? button(placeOf(p), () => onclick(p), { class: "link mono" }) : code(placeOf(p))), " ",
    bdi(p.message), p.hint && muted("; ", bdi(p.hint)))));
}

// placeOf says where a problem is in what was sent.
function placeOf(p) { return p.line ? "line " + p.line : p.pointer; }

let toasts;

// toast says for some seconds what happened, also to a screen reader.
export function toast(text, bad) {
  toasts ??= document.body.appendChild(h("div", { class: "toasts", role: "status", "aria-live": "polite" }));
  const t = h("div", { class: bad ? "toast bad" : "toast" }, text);
  toasts.append(t);
  setTimeout(() => t.remove(), bad ? 9000 : 4500);
}

// dialog opens a modal dialog. It returns the element; closing it removes it.
export function dialog(title, body, props) {
  const d = h("dialog", { "aria-label": title, ...props },
    h("header", null, h("h2", null, title), button("✕", () => d.close(), { class: "icon", "aria-label": "Close" })), body);
  d.addEventListener("close", () => d.remove());
  d.addEventListener("click", (e) => { if (e.target === d) d.close(); });
  document.body.append(d);
  d.showModal();
  d.querySelector("textarea, select, input[type=text]")?.focus();
  return d;
}
