// The shell: routes, theme, shortcuts. The hash names what is shown, so that every view has a link.

import { exported, get, post } from "./api.js";
import { ChatPage } from "./chat.js";
import { bold, button, dialog, failure, fill, h, loading, s, toast, visible } from "./dom.js";
import { RunPage } from "./run.js";
import { RunsPage } from "./runs.js";

const store = {
  get(k) { try { return localStorage.getItem("runteam." + k); } catch { return null; } },
  set(k, v) { try { localStorage.setItem("runteam." + k, v); } catch { /* a file has no storage */ } },
};

const app = { viewer: { accepts: "confidential", canStart: false, canSteer: false, canAnswer: false }, store };

app.go = (hash) => { location.hash = hash; };
app.title = (text) => { document.title = text ? visible(text) + " · runteam" : "runteam"; };

const dark = matchMedia("(prefers-color-scheme: dark)");
dark.onchange = applyTheme;

function applyTheme() { document.documentElement.dataset.theme = store.get("theme") || (dark.matches ? "dark" : "light"); }

function toggleTheme() {
  store.set("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  applyTheme();
}

function glyph(d) { return s("svg", { viewBox: "0 0 16 16", class: "glyph", "aria-hidden": "true" }, s("path", { d })); }

function logo() {
  return s("svg", { viewBox: "0 0 32 32", class: "logo", "aria-hidden": "true" },
    s("path", { d: "M10 9.5c7 0 5 13 12 13M10 22.5c3 0 4-2 5-4" }), s("circle", { cx: 9, cy: 9.5, r: 3.2 }), s("circle", { cx: 9, cy: 22.5, r: 3.2 }), s("rect", { x: 20, y: 19.3, width: 6.4, height: 6.4, rx: 1.6 }));
}

function shell() {
  app.crumbs = h("nav", { class: "crumbs", "aria-label": "Breadcrumb" });
  app.actions = h("div", { class: "actions" });
  app.main = h("main", { id: "main", tabindex: "-1" });
  const theme = button(glyph("M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5v11"), toggleTheme, { class: "icon", "aria-label": "Switch between light and dark", title: "Light or dark (T)" });
  const { accepts, by, canSignOut } = app.viewer;
  document.querySelector(".boot")?.remove();
  const help = button("?", shortcuts, { class: "icon", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)" });
  document.body.append(
    h("a", { class: "skip", href: "#main", onclick: (e) => { e.preventDefault(); app.main.focus(); } }, "Skip to content"),
    h("header", { class: "top" }, h("a", { class: "brand", href: "#/runs", "aria-label": "runteam: all runs" }, logo(), h("span", null, "runteam")), app.crumbs, app.actions,
      h("div", { class: "tools" }, h("span", { class: "viewer", title: "You see what this clearance may see" }, by && [bold(by), " "], h("span", { class: "wide-only" }, "sees up to ", h("b", null, accepts))), canSignOut && button("Sign out", signOut, { class: "small" }), theme, help)),
    app.main);
}

// signOut ends the session of this browser, and shows the form for a token.
async function signOut() {
  try {
    await post("/sign-out");
  } catch (err) {
    if (err.status !== 401) return toast(err.message, true); // else it has ended
  }
  location.replace("/login");
}

const keys = [
  ["?", "this list"], ["T", "light or dark"], ["G", "all runs"], ["1 – 8", "the views of a run"], ["/", "search runs, or filter tasks"], ["J, K", "next or previous task"],
  ["W", "how did the selected text get here? Without a selection: the word at the cursor"], ["P", "pause or resume a live run"], ["F", "task in full view, or beside the run"], ["Esc", "close the panel"],
  ["Arrow keys", "in the graph: to the next task that way; in a text: by word and line, with Shift to select"],
  ["Enter", "open the task; in a text: follow the selected text"], ["E", "in the graph: the next handoff of the task"], ["Space", "in the graph: unfold or fold"], ["+, -, 0", "in the graph: zoom in, out, fit"],
];

function shortcuts() {
  const on = h("input", { type: "checkbox", id: "keys-on", onchange: () => store.set("keys", on.checked ? "" : "off") });
  on.checked = keysOn();
  dialog("Keyboard", h("div", { class: "pad" },
    h("dl", { class: "keys" }, keys.map(([k, what]) => [h("dt", null, k.split(", ").map((x) => h("kbd", null, x))), h("dd", null, what)])),
    h("p", null, on, " ", h("label", { for: "keys-on" }, "Shortcuts of a single key"))));
}

function keysOn() { return store.get("keys") !== "off"; }

function press(e) {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.target.closest?.("input,textarea,select") || document.querySelector("dialog[open]")) return;
  if (e.key === "Escape") return app.page?.escape?.();
  if (!keysOn()) return;
  if (e.key === "?") shortcuts();
  else if (e.key === "t") toggleTheme();
  else if (e.key === "g") app.go("#/runs");
  else if (!app.page?.press?.(e)) return;
  e.preventDefault();
}

// parse splits the hash into the parts of its path and its query.
export function parse(hash) {
  const [p, q] = hash.replace(/^#/, "").split("?");
  const parts = p.split("/").filter(Boolean).map((x) => { try { return decodeURIComponent(x); } catch { return x; } });
  return { parts, query: new URLSearchParams(q ?? "") };
}

function route() {
  const { parts, query } = parse(location.hash);
  if (parts[0] === "chats" && !exported && (parts[1] || query.get("spec"))) return show(() => new ChatPage(app, parts[1], query.get("spec")), "chats/" + (parts[1] ?? "?" + query.get("spec")), query);
  if (parts[0] !== "runs" || !parts[1]) {
    if (exported) {
      location.replace("#/runs/" + exported.run);
      return;
    }
    return show(() => new RunsPage(app), "runs", query);
  }
  show(() => new RunPage(app, parts[1]), "runs/" + parts[1], query, parts.slice(2));
}

// reopen shows the page as if it was opened now.
app.reopen = () => {
  app.key = undefined;
  route();
};

function show(make, key, query, rest) {
  if (app.key !== key) {
    app.page?.close?.();
    fill(app.crumbs);
    fill(app.actions);
    app.key = key;
    app.page = make();
    fill(app.main, app.page.el);
    app.main.scrollTop = 0;
  }
  app.page.go?.(rest ?? [], query);
}

async function begin() {
  applyTheme();
  if (exported) app.viewer.accepts = exported.accepts;
  else {
    const wait = document.body.appendChild(loading("the page"));
    try {
      app.viewer = await get("/viewer");
    } catch (err) {
      fill(document.body, h("main", { class: "pad" }, h("h1", null, "runteam"), failure(err, () => location.reload())));
      return;
    }
    wait.remove();
  }
  shell();
  addEventListener("hashchange", route);
  addEventListener("keydown", press);
  route();
}

begin();
