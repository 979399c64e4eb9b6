// The graph of a run. The server computed where everything is; here only what is in sight is drawn,
// and far away all nodes of a state are one path.

import { get, ofRun } from "./api.js";
import { button, change, clicks, compact, duration, empty, failure, fill, h, labelShape, loading, money, s, statusIcon, statusWord } from "./dom.js";
import { childrenOf, holdersOf, nameOf, stateOf, tokensOf, tookMs } from "./state.js";

const farScale = 0.34, farNodes = 700, mostWays = 2000;

export class GraphView {
  constructor(page) {
    this.page = page;
    this.state = page.state;
    this.expanded = new Set();
    this.x = this.y = 0;
    this.k = 1;
    this.nodes = new Map();
    this.drawn = new Map();
    this.edgesDrawn = new Map();
    this.svg = s("svg", { class: "graph-svg", role: "group", "aria-label": "Graph of the tasks. Arrow keys move between tasks, Enter opens one." });
    this.world = s("g");
    this.far = s("g", { class: "far" });
    this.edgeLayer = s("g", { class: "edges" });
    this.nodeLayer = s("g", { class: "nodes" });
    this.wayLayer = s("g", { class: "edges" });
    this.world.append(this.edgeLayer, this.wayLayer, this.far, this.nodeLayer);
    this.svg.append(arrow(), this.world);
    this.folds = h("div", { class: "folds" });
    this.info = h("div", { class: "graph-info", "aria-live": "polite" });
    this.el = h("div", { class: "graph" }, this.svg, this.folds, legend(), h("div", { class: "zoom", role: "group", "aria-label": "Zoom" },
      button("+", () => this.zoom(1.3), { class: "icon", "aria-label": "Zoom in" }), button("−", () => this.zoom(1 / 1.3), { class: "icon", "aria-label": "Zoom out" }),
      button("fit", () => this.fit(true), { class: "icon wide", "aria-label": "Fit the graph" })), this.info);
    this.listen();
    this.load();
  }

  close() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  async load(was, title) {
    const query = [...this.expanded].map((t) => "expand=" + encodeURIComponent(t)).join("&");
    if (this.nodes.size === 0) fill(this.info, loading("the graph"));
    try {
      this.take(await get(ofRun(this.page, "graph") + (query ? "?" + query : "")));
      fill(this.info, this.nodes.size === 0 && empty("No tasks yet", "A goal is being planned, or nothing has begun."));
    } catch (err) {
      if (!was) return fill(this.info, failure(err, () => this.load()));
      this.expanded = was; // a file has not all drawings
      this.page.app.go(this.page.foldLink(title));
    }
  }

  take(doc) {
    this.doc = doc;
    this.shape = this.state.shape;
    this.reset();
    this.nodes = new Map((doc.nodes ?? []).map((n) => [n.id, n]));
    this.owner = new Map();
    for (const n of this.nodes.values()) for (const m of n.members ?? []) this.owner.set(m, n.id);
    this.edges = (doc.edges ?? []).map((e, i) => ({ ...e, i, ...box(e.points) }));
    this.out = new Map();
    this.into = new Map();
    for (const e of this.edges) {
      (this.out.get(e.from) ?? this.out.set(e.from, []).get(e.from)).push(e);
      (this.into.get(e.to) ?? this.into.set(e.to, []).get(e.to)).push(e);
    }
    this.index();
    if (!this.nodes.has(this.current)) this.current = doc.nodes?.[0]?.id;
    fill(this.folds, [...this.expanded].map((t) => button("Fold " + t, () => this.toggle(t), { class: "small" })));
    const layers = [...this.nodes.values()], first = layers.find((n) => n.layer === 0), second = layers.find((n) => n.layer === 1);
    this.down = Boolean(first && second && second.y >= first.y + first.h); // or to the right
    if (!this.touched) this.fit(); else this.draw(true);
    this.drawWays();
    this.heldDrawn = 0;
    this.drawHeld();
    this.selected = undefined;
    this.select(this.page.panel?.id ?? null);
  }

  reset() {
    for (const m of [this.drawn, this.edgesDrawn]) {
      for (const el of m.values()) el.remove();
      m.clear();
    }
  }

  // index puts nodes and edges into cells of a grid, to find those in sight quickly.
  index() {
    this.cell = 512;
    this.grid = new Map();
    const put = (kind, item, x0, y0, x1, y1) => {
      for (let i = Math.floor(x0 / this.cell); i <= Math.floor(x1 / this.cell); i++) {
        for (let j = Math.floor(y0 / this.cell); j <= Math.floor(y1 / this.cell); j++) {
          const k = i * 65536 + j;
          (this.grid.get(k) ?? this.grid.set(k, { n: [], e: [] }).get(k))[kind].push(item);
        }
      }
    };
    for (const n of this.nodes.values()) put("n", n, n.x, n.y, n.x + n.w, n.y + n.h);
    for (const e of this.edges) put("e", e, e.x0, e.y0, e.x1, e.y1);
  }

  listen() {
    this.observer = new ResizeObserver(() => {
      const { clientWidth: w, clientHeight: hh } = this.el;
      if (!w || !hh) return;
      const first = !this.width;
      this.width = w;
      this.height = hh;
      if (first && this.doc || !this.touched && this.doc) this.fit();
      const n = this.nodes.get(this.selected);
      if (n) this.reveal(n);
      this.draw(true);
    });
    this.observer.observe(this.el);
    this.svg.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.svg.addEventListener("pointerdown", (e) => this.grab(e));
    this.el.addEventListener("keydown", (e) => this.press(e)); // on the SVG, listeners of focus would make it focusable
    clicks(this.svg, (e) => this.click(e));
    this.el.addEventListener("focusin", (e) => {
      const id = e.target.closest("[data-id]")?.dataset.id;
      if (id) this.setCurrent(id);
    });
  }

  wheel(e) {
    e.preventDefault();
    this.touched = true;
    const r = this.svg.getBoundingClientRect(), unit = e.deltaMode === 1 ? 16 : 1;
    if (e.ctrlKey || e.metaKey) this.zoom(Math.exp(-e.deltaY * unit * 0.004), e.clientX - r.left, e.clientY - r.top);
    else {
      this.x -= (e.shiftKey ? e.deltaY : e.deltaX) * unit;
      this.y -= (e.shiftKey ? 0 : e.deltaY) * unit;
      this.draw();
    }
  }

  grab(e) {
    this.pointers ??= new Map();
    if (e.button !== 0) return;
    this.pointers.set(e.pointerId, [e.clientX, e.clientY]);
    this.moved = false;
    const move = (m) => {
      const was = this.pointers.get(m.pointerId);
      if (!was) return;
      const dx = m.clientX - was[0], dy = m.clientY - was[1];
      if (!this.moved && Math.hypot(dx, dy) < 4) return;
      if (!this.moved) this.svg.setPointerCapture(m.pointerId);
      this.moved = this.touched = true;
      const before = this.spread();
      this.pointers.set(m.pointerId, [m.clientX, m.clientY]);
      const after = this.spread();
      if (before) {
        const r = this.svg.getBoundingClientRect();
        this.zoom(after.d / before.d, after.x - r.left, after.y - r.top);
      } else {
        this.x += dx;
        this.y += dy;
        this.draw();
      }
    };
    const up = (u) => {
      this.pointers.delete(u.pointerId);
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
  }

  spread() {
    if (this.pointers.size !== 2) return null;
    const [a, b] = [...this.pointers.values()];
    return { d: Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1])), x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2 };
  }

  zoom(by, px = this.width / 2, py = this.height / 2) {
    const k = Math.max(0.03, Math.min(2.5, this.k * by));
    this.x = px - (px - this.x) * k / this.k;
    this.y = py - (py - this.y) * k / this.k;
    this.k = k;
    this.touched = true;
    this.draw();
  }

  fit(asked) {
    if (!this.doc || !this.width) return;
    if (asked) this.touched = false;
    const pad = this.width > 700 ? 28 : 10, w = Math.max(1, this.doc.width), hh = Math.max(1, this.doc.height);
    const whole = Math.min((this.width - 2 * pad) / w, (this.height - 2 * pad) / hh, 1.1);
    // At first it is readable, if need be in part; a telephone has the whole width of what is not too wide, from the top.
    const most = this.width / 420, least = this.width > 700 ? 0.62 : Math.max(farScale, Math.min(0.62, (this.width - 2 * pad) / w));
    this.k = asked ? Math.max(0.03, whole) : Math.max(whole, Math.min(least, most));
    const wide = w * this.k > this.width - 2 * pad + 1;
    this.x = wide && whole < this.k ? pad : (this.width - w * this.k) / 2;
    this.y = this.width <= 700 || hh * this.k > this.height - 2 * pad ? pad : (this.height - hh * this.k) / 2;
    this.placed = true;
    this.draw(true);
  }

  draw(now) {
    if (now) {
      cancelAnimationFrame(this.frame);
      this.frame = 0;
      return this.paint(true);
    }
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint(force) {
    if (!this.doc || !this.width) return;
    this.world.setAttribute("transform", `translate(${this.x.toFixed(1)} ${this.y.toFixed(1)}) scale(${this.k.toFixed(4)})`);
    const v = { x0: -this.x / this.k, y0: -this.y / this.k, x1: (this.width - this.x) / this.k, y1: (this.height - this.y) / this.k };
    const seen = this.seen;
    if (!force && seen && seen.k === this.k && v.x0 >= seen.x0 && v.y0 >= seen.y0 && v.x1 <= seen.x1 && v.y1 <= seen.y1) return;
    const mx = (v.x1 - v.x0) * 0.35, my = (v.y1 - v.y0) * 0.35;
    this.seen = { k: this.k, x0: v.x0 - mx, y0: v.y0 - my, x1: v.x1 + mx, y1: v.y1 + my };
    const nodes = new Set(), edges = new Set();
    this.query(this.seen, nodes, edges);
    this.isFar = this.k < farScale && nodes.size > 60 || nodes.size > farNodes;
    this.svg.classList.toggle("is-far", this.isFar);
    this.svg.classList.toggle("is-small", this.k < 0.5);
    if (force && this.isFar) this.farDrawn = false;
    if (this.isFar) this.paintFar(); else this.paintNear(nodes, edges, v);
  }

  query(v, nodes, edges) {
    const c = this.cell, put = (g) => {
      for (const n of g.n) if (n.x < v.x1 && n.x + n.w > v.x0 && n.y < v.y1 && n.y + n.h > v.y0) nodes.add(n);
      for (const e of g.e) if (e.x0 < v.x1 && e.x1 > v.x0 && e.y0 < v.y1 && e.y1 > v.y0) edges.add(e);
    };
    const i0 = Math.floor(v.x0 / c), i1 = Math.floor(v.x1 / c), j0 = Math.floor(v.y0 / c), j1 = Math.floor(v.y1 / c);
    if ((i1 - i0 + 1) * (j1 - j0 + 1) > this.grid.size) {
      for (const g of this.grid.values()) put(g);
      return;
    }
    for (let i = i0; i <= i1; i++) for (let j = j0; j <= j1; j++) {
      const g = this.grid.get(i * 65536 + j);
      if (g) put(g);
    }
  }

  // paintFar draws the whole graph at once, and again only after something changed.
  paintFar() {
    if (this.farDrawn) return;
    this.farDrawn = true;
    this.reset();
    const by = new Map(), { edges } = this;
    for (const n of this.nodes.values()) {
      const k = this.statusOf(n);
      by.set(k, (by.get(k) ?? "") + `M${n.x} ${n.y}h${n.w}v${n.h}h${-n.w}z`);
    }
    let lines = "";
    if (edges.length < 6000) for (const e of edges) lines += "M" + e.points[0].join(" ") + "L" + e.points.at(-1).join(" ");
    fill(this.far, s("path", { class: "far-edges", d: lines }), [...by].map(([k, d]) => s("path", { class: "far-" + k, d })));
    const sel = this.nodes.get(this.selected ?? "");
    if (sel) this.far.append(s("rect", { class: "far-selected", x: sel.x, y: sel.y, width: sel.w, height: sel.h }));
  }

  // paintNear draws what is in sight now, and what is around it as far as a frame has time for it.
  paintNear(nodes, edges, v) {
    if (this.farDrawn) {
      this.farDrawn = false;
      fill(this.far);
    }
    const cur = this.nodes.get(this.current);
    if (cur) nodes.add(cur);
    for (const [id, el] of this.drawn) {
      if (nodes.has(this.nodes.get(id))) continue;
      el.remove();
      this.drawn.delete(id);
    }
    const until = performance.now() + 3;
    let later = false;
    for (const n of nodes) {
      if (this.drawn.has(n.id)) continue;
      if (n.x < v.x1 && n.x + n.w > v.x0 && n.y < v.y1 && n.y + n.h > v.y0 || n === cur || performance.now() < until) this.drawn.set(n.id, this.nodeLayer.appendChild(this.node(n)));
      else later = true;
    }
    for (const [i, el] of this.edgesDrawn) {
      if (edges.has(this.edges[i])) continue;
      el.remove();
      this.edgesDrawn.delete(i);
    }
    for (const e of edges) {
      if (this.edgesDrawn.has(e.i)) continue;
      if (e.x0 < v.x1 && e.x1 > v.x0 && e.y0 < v.y1 && e.y1 > v.y0 || performance.now() < until) this.edgesDrawn.set(e.i, this.edgeLayer.appendChild(this.edge(e)));
      else later = true;
    }
    if (!later) return;
    this.seen = null;
    this.draw();
  }

  statusOf(n) {
    if (n.kind === "input") return "input";
    if (!n.members) return this.state.tasks.get(n.id)?.status ?? "pending";
    const all = new Set(n.members.map((m) => this.state.tasks.get(m)?.status ?? "pending"));
    for (const st of ["failed", "in_progress", "waiting", "ready", "pending", "blocked"]) if (all.has(st)) return st;
    return all.has("completed") ? "completed" : [...all][0] ?? "pending";
  }

  node(n) {
    const t = this.state.tasks.get(n.id), status = this.statusOf(n), label = t?.label ?? n.label ?? "";
    const title = t ? nameOf(t) : n.name || n.title, fold = Boolean(n.members);
    const g = s("g", { class: `node n-${status} k-${n.kind ?? "task"} l-${label || "none"}`, transform: `translate(${n.x} ${n.y})`, tabindex: n.id === this.current ? 0 : -1, role: "button", data: { id: n.id } });
    if (n.id === this.selected) g.classList.add("selected");
    if (fold) g.append(s("rect", { class: "back", x: 5, y: 5, width: n.w, height: n.h, rx: 8 }));
    g.append(s("rect", { class: "body", width: n.w, height: n.h, rx: 8 }), s("path", { class: "bar", d: `M0 8a8 8 0 0 1 4-6.9v${n.h - 2.2}a8 8 0 0 1-4-6.9z` }));
    const small = n.h < 50, kids = t && !fold ? childrenOf(t) : {}, all = kids.working + kids.ended, held = t && holdersOf(t);
    const family = all > 0 && (kids.working > 0 ? kids.working + " working, " + kids.ended + " ended" : all + (all > 1 ? " children" : " child"));
    if (family) g.append(s("g", { class: "kids", transform: `translate(${n.w - 10} 0)` }, s("rect", { x: -6 * family.length - 6, y: -9, width: 6 * family.length + 12, height: 17, rx: 8 }), s("text", { class: "sub", y: 4, "text-anchor": "end" }, family)));
    if (n.kind !== "input") g.append(s("g", { transform: "translate(13 12)" }, statusIcon(status, { width: 13, height: 13 })));
    const x = n.kind === "input" ? 16 : 33, end = this.clip(n.w - (small ? 26 : 8));
    g.append(s("text", { class: "title", x, y: small ? n.h / 2 + 4 : 23, "clip-path": end }, title.slice(0, 200)));
    const words = small ? [] : [fold ? (n.count ?? n.members.length) + (n.most > n.count ? " of at most " + n.most : "") + (n.kind === "loop" ? " rounds" : " items") : held || n.agent || "", !held && t?.model].filter(Boolean);
    if (!small) g.append(s("text", { class: "sub", x: 14, y: 40, "clip-path": end }, words.join(" · ").slice(0, 200)), s("text", { class: "sub num", x: 14, y: n.h - 9, "clip-path": this.clip(n.w - 24) }, this.numbers(n, t)));
    if (label) g.append(s("g", { class: "tag", transform: `translate(${n.w - 20} ${n.h - 20})` }, labelShape(label)));
    g.append(s("text", { class: "unseen", x: 14, y: 20 }, ", " + [n.kind === "input" ? "input" : t ? stateOf(t) : statusWord(status), label && "label " + label, family && "children: " + family, held, fold ? "folded, Space unfolds" : ""].filter(Boolean).join(", ")));
    return g;
  }

  // clip returns a clip path that ends texts where a node of this width does.
  clip(width) {
    const id = "clip" + Math.round(width);
    if (!this.clips?.has(id)) {
      (this.clips ??= new Set()).add(id);
      this.svg.firstChild.append(s("clipPath", { id }, s("rect", { width, height: 200 })));
    }
    return `url(#${id})`;
  }

  numbers(n, t) {
    if (n.members) {
      const done = n.members.filter((m) => this.state.tasks.get(m)?.status === "completed").length;
      return done + " of " + n.members.length + " completed";
    }
    if (!t) return "";
    const cost = this.state.taskCost(t);
    return [t.startedAt && duration(tookMs(t)), t.status === "waiting" && stateOf(t), tokensOf(t) > 0 && compact(tokensOf(t)) + " tok", cost > 0 && money(cost)].filter(Boolean).join(" · ");
  }

  edge(e) {
    const d = route(e.points, this.down);
    const lit = this.selected && (e.from === this.selected || e.to === this.selected), held = this.held?.get(e.from + "\n" + e.to);
    const n = e.points.length / 2, [[x, y], [u, v]] = [e.points[Math.floor(n - 0.5)], e.points[Math.floor(n)]];
    return s("g", { class: `edge e-${e.kind}` + (held ? " e-held" : "") + (lit ? " lit" : ""), data: { edge: e.i } }, line(d, this.edgeName(e) + (held === "▒" ? ": withheld" : held ? ": withheld in part" : "")),
      held && s("text", { class: "held", x: (x + u) / 2, y: (y + v) / 2 }, held));
  }

  // drawHeld draws the edges again after context was withheld along some. An edge of a fold has the marks of its tasks.
  drawHeld() {
    const { withheld, narrowed, held } = this.state, n = withheld + narrowed;
    if (n === this.heldDrawn) return;
    this.heldDrawn = n;
    this.held = new Map();
    for (const [edge, mark] of held) {
      const key = edge.split("\n").map((id) => this.nodes.has(id) ? id : this.owner.get(id)).join("\n");
      if (this.held.get(key) !== "▒") this.held.set(key, mark);
    }
    for (const el of this.edgesDrawn.values()) el.remove();
    this.edgesDrawn.clear();
    this.draw(true);
  }

  // drawWays draws a line between tasks of which one has read a handoff of the other.
  drawWays() {
    const all = new Map((this.doc.sent ?? []).map((w) => [w.from + " " + w.to, w])), shown = new Map(), node = (id) => this.nodes.get(this.nodes.has(id) ? id : this.owner.get(id));
    for (const [key, w] of this.state.ways) all.set(key, w);
    this.waysDrawn = this.state.ways.size;
    for (const w of all.values()) {
      const a = node(w.from), b = node(w.to);
      if (a && b && a !== b && shown.size < mostWays) shown.set(a.id + " " + b.id, [a, b]);
    }
    fill(this.wayLayer, [...shown.values()].map(([a, b]) => {
      const d = bow(a, b);
      return s("g", { class: "edge way", data: { from: a.id, to: b.id } }, line(d, this.edgeName({ from: a.id, to: b.id, kind: "sent" })));
    }));
  }

  edgeName(e) {
    const name = (id) => this.nodes.get(id)?.title ?? id;
    return name(e.from) + " → " + name(e.to) + ({ condition: " (condition)", order: " (order)", input: " (input)", sent: " (sent while working)" }[e.kind] ?? "");
  }

  click(e) {
    if (this.moved) return;
    const node = e.target.closest("[data-id]"), edge = e.target.closest("[data-edge]"), way = e.target.closest(".way");
    if (node) this.open(node.dataset.id);
    else if (way) this.openEdge(way.dataset);
    else if (edge) this.openEdge(this.edges[edge.dataset.edge]);
    else if (this.isFar) {
      const r = this.svg.getBoundingClientRect(), x = (e.clientX - r.left - this.x) / this.k, y = (e.clientY - r.top - this.y) / this.k;
      const hit = [...this.nodes.values()].find((n) => x >= n.x && x <= n.x + n.w && y >= n.y && y <= n.y + n.h);
      if (hit) this.open(hit.id);
    }
  }

  open(id) {
    const n = this.nodes.get(id);
    if (n?.members) this.toggle(n.id.replace(/^fold:/, ""));
    else if (n?.kind === "input") this.page.app.go(this.page.link("flow"));
    else this.page.openTask(id);
  }

  openEdge(e) { this.page.app.go(this.page.edgeLink(e.from, e.to)); }

  toggle(title) {
    const was = this.expanded, open = [...was], at = open.indexOf(title);
    this.expanded = new Set(at >= 0 ? open.filter((t) => t !== title) : [...open, title]);
    if (!this.page.app.exported) return this.load();
    // A file has the drawings of one unfolded fold and those around it.
    this.expanded = new Set(at >= 0 ? open.slice(0, at) : [...open.slice(0, open.indexOf(this.nodes.get("fold:" + title)?.fold) + 1), title]);
    this.load(was, title);
  }

  setCurrent(id) {
    if (id === this.current) return;
    this.drawn.get(this.current)?.setAttribute("tabindex", "-1");
    this.current = id;
    this.drawn.get(id)?.setAttribute("tabindex", "0");
  }

  press(e) {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("button")) return;
    const n = this.nodes.get(this.current), dir = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[e.key];
    if (dir && n) this.focusNode(this.next(n, dir));
    else if (e.key === "Enter" && n) this.open(n.id);
    else if (e.key === " " && (n?.members || n?.fold)) this.toggle(n.fold || n.id.replace(/^fold:/, ""));
    else if (e.key === "+" || e.key === "=") this.zoom(1.3);
    else if (e.key === "-") this.zoom(1 / 1.3);
    else if (e.key === "0") this.fit(true);
    else if (e.key === "e" && n) this.nextEdge(n);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  // next returns the node that is nearest in a direction: along edges from layer to layer, else in the layer.
  next(n, [dx, dy]) {
    const on = this.down ? dy : dx;
    const linked = on ? (on > 0 ? this.out : this.into).get(n.id)?.map((e) => this.nodes.get(on > 0 ? e.to : e.from)) : null;
    const all = linked?.length ? linked : [...this.nodes.values()].filter((m) => on ? (m.layer - n.layer) * on > 0 : m.layer === n.layer && (m.x - n.x) * dx + (m.y - n.y) * dy > 0);
    return all.filter(Boolean).sort((a, b) => Math.hypot(a.x - n.x, a.y - n.y) - Math.hypot(b.x - n.x, b.y - n.y))[0];
  }

  nextEdge(n) {
    const all = [...this.into.get(n.id) ?? [], ...this.out.get(n.id) ?? []];
    if (all.length === 0) return;
    this.edgeAt = this.edgeOf === n.id ? ((this.edgeAt ?? -1) + 1) % all.length : 0;
    this.edgeOf = n.id;
    this.page.keepFocus = true;
    this.openEdge(all[this.edgeAt]);
  }

  focusNode(n) {
    if (!n) return;
    this.setCurrent(n.id);
    this.reveal(n);
    this.paint(true);
    this.drawn.get(n.id)?.focus({ preventScroll: true });
  }

  reveal(n) {
    const pad = 24;
    if (this.k < farScale) this.zoom(0.6 / this.k);
    const x0 = n.x * this.k + this.x, y0 = n.y * this.k + this.y, x1 = x0 + n.w * this.k, y1 = y0 + n.h * this.k;
    if (x0 < pad) this.x += pad - x0; else if (x1 > this.width - pad) this.x -= x1 - this.width + pad;
    if (y0 < pad) this.y += pad - y0; else if (y1 > this.height - pad) this.y -= y1 - this.height + pad;
  }

  select(id) {
    id = id && !this.nodes.has(id) ? this.owner?.get(id) ?? id : id;
    if (this.selected === id) return;
    this.selected = id;
    this.edgesDrawn.forEach((el, i) => el.classList.toggle("lit", Boolean(id) && (this.edges[i].from === id || this.edges[i].to === id)));
    this.drawn.forEach((el, k) => el.classList.toggle("selected", k === id));
    if (this.isFar) this.draw(true);
    const n = this.nodes.get(id);
    if (n) {
      this.setCurrent(id);
      requestAnimationFrame(() => {
        this.reveal(n);
        this.draw(true);
      });
    }
  }

  focus() { this.drawn.get(this.current)?.focus({ preventScroll: true }); }

  // tick shows the time of the tasks that are not over.
  tick() {
    if (!this.state.live) return;
    for (const [id, el] of this.drawn) {
      const t = this.state.tasks.get(id), text = t?.startedAt && !t.endedAt && el.querySelector(".sub.num");
      if (text) change(text, this.numbers(this.nodes.get(id), t));
    }
  }

  update(changed, whole) {
    if (this.state.shape !== this.shape && this.doc) {
      this.shape = this.state.shape;
      this.load();
    }
    if (!this.doc) return;
    if (this.state.ways.size !== this.waysDrawn) this.drawWays();
    this.drawHeld();
    if (this.isFar) {
      if (changed.size > 0 || whole) this.draw(true);
      return;
    }
    const dirty = new Set(whole ? this.drawn.keys() : [...changed].map((id) => this.nodes.has(id) ? id : this.owner.get(id)));
    for (const id of dirty) {
      const old = this.drawn.get(id);
      if (!old) continue;
      const focused = old === document.activeElement, now = this.node(this.nodes.get(id));
      old.replaceWith(now);
      this.drawn.set(id, now);
      if (focused) now.focus({ preventScroll: true });
    }
  }
}

function arrow() {
  return s("defs", null, s("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7.2, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse", markerUnits: "userSpaceOnUse" }, s("path", { d: "M0 0.6L8 4L0 7.4z", class: "tip" })));
}

// line draws a line with a tip and a name.
function line(d, name) { return [s("path", { class: "line", d, "marker-end": "url(#tip)" }), s("path", { class: "hit", d }, s("title", null, name))]; }

function legend() {
  return h("div", { class: "legend", "aria-hidden": "true" }, ["public", "internal", "confidential", "secret"].map((l) => h("span", { class: "l-" + l }, s("svg", { viewBox: "0 0 12 12" }, labelShape(l)), l)), ["◐ in part", "▒ withheld"].map((x) => h("span", null, x)));
}

function box(points) {
  let x0 = Infinity, y0 = Infinity, x1 = -Infinity, y1 = -Infinity;
  for (const [x, y] of points) {
    x0 = Math.min(x0, x);
    x1 = Math.max(x1, x);
    y0 = Math.min(y0, y);
    y1 = Math.max(y1, y);
  }
  return { x0, y0: y0 - 1, x1, y1: y1 + 1 };
}

// route draws an edge through its points, at each of them in the direction of the layers.
function route(points, down) {
  let d = `M${points[0].join(" ")}`;
  for (let i = 1; i < points.length; i++) {
    const [[x, y], [u, v]] = [points[i - 1], points[i]];
    d += down ? `C${x} ${(y + v) / 2} ${u} ${(y + v) / 2} ${u} ${v}` : `C${(x + u) / 2} ${y} ${(x + u) / 2} ${v} ${u} ${v}`;
  }
  return d;
}

// bow draws a line from the rim of one node to that of another, bent so that the line back does not cover it.
function bow(a, b) {
  const [x, y, u, v] = [a.x + a.w / 2, a.y + a.h / 2, b.x + b.w / 2, b.y + b.h / 2], far = Math.hypot(u - x, v - y) || 1;
  const bend = Math.min(60, 14 + far / 8), [cx, cy] = [(x + u) / 2 - (v - y) / far * bend, (y + v) / 2 + (u - x) / far * bend];
  const rim = (n, mx, my) => {
    const [dx, dy] = [cx - mx, cy - my], t = Math.min(n.w / 2 / (Math.abs(dx) || 1e-9), n.h / 2 / (Math.abs(dy) || 1e-9), 1);
    return (mx + dx * t).toFixed(1) + " " + (my + dy * t).toFixed(1);
  };
  return `M${rim(a, x, y)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${rim(b, u, v)}`;
}
