// The graph of a run. Only what is in sight is drawn, and far away all nodes of a state are one path.

import { get, ofRun } from "./api.js";
import { button, change, clicks, compact, duration, empty, failure, fill, h, labels, labelShape, loading, money, s, statusIcon, statusWord } from "./dom.js";
import { layout, titleLine } from "./layout.js";
import { clip, subFont } from "./lines.js";
import { childrenOf, holdersOf, stateOf, tokensOf, tookMs, toolsOf } from "./state.js";

const farScale = 0.34, farNodes = 700, mostWays = 2000, narrowPad = 10, leastReadable = 0.8;

export class GraphView {
  constructor(page) {
    this.page = page;
    this.state = page.state;
    this.expanded = new Set();
    this.x = this.y = 0;
    this.k = 1;
    this.nodes = new Map();
    this.pointers = new Map();
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

  async load() {
    this.shape = this.state.shape;
    if (this.nodes.size === 0) fill(this.info, loading("the graph"));
    try {
      this.take(await get(ofRun(this.page, "graph")));
      fill(this.info, this.nodes.size === 0 && empty("No tasks yet", "A goal is being planned, or nothing has begun."));
    } catch (err) {
      fill(this.info, failure(err, () => this.load()));
    }
  }

  take(doc) {
    const was = this.nodes.get(this.current), focused = this.nodeLayer.contains(document.activeElement);
    this.doc = doc;
    this.reset();
    Object.assign(this, fold(doc, this.expanded));
    this.list = [...this.nodes.values()];
    for (const n of this.list) n.calls = this.callsOf(n);
    this.layout();
    this.edges.forEach((e, id) => Object.assign(e, { id, ...box(e.points) }));
    fill(this.folds, [...this.expanded].map((t) => button("Fold " + t, () => this.toggle(t), { class: "small" })));
    const n = this.nodes.get(this.owner.get(was?.members?.[0] ?? was?.id));
    this.current = (n ?? this.list[0])?.id;
    if (n && this.touched) { // it stays where it was in the window
      this.x += (was.x - n.x) * this.k;
      this.y += (was.y - n.y) * this.k;
    }
    if (!this.touched) this.fit(); else this.draw(true);
    if (focused) this.focus();
    this.drawWays();
    this.heldDrawn = 0;
    this.drawHeld();
    this.selected = undefined;
    this.select(this.page.panel?.id ?? null);
  }

  // layout gives nodes and edges their places: on a telephone one node above the other, if several side by side and the
  // lines around them are too wide.
  layout() {
    const room = this.room();
    this.size = layout(this.list, this.edges, room);
    if (this.size.width > room) this.size = layout(this.list, this.edges, room, 0);
  }

  // room is how wide the graph may be: a telephone shows what is as wide as it in a size that can be read.
  room() { return this.narrow ? (this.width - 2 * narrowPad) / leastReadable : Infinity; }

  get narrow() { return this.width <= 700; }

  reset() {
    fill(this.nodeLayer);
    fill(this.edgeLayer);
    this.drawn.clear();
    this.edgesDrawn.clear();
  }

  listen() {
    this.observer = new ResizeObserver(() => {
      const { clientWidth: w, clientHeight: hh } = this.el;
      if (!w || !hh) return;
      const first = !this.width, room = this.room();
      this.width = w;
      this.height = hh;
      if (this.doc && this.room() !== room) this.take(this.doc);
      else if (first || !this.touched) this.fit();
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
    const unit = e.deltaMode === 1 ? 16 : 1;
    if (e.ctrlKey || e.metaKey) this.zoom(Math.exp(-e.deltaY * unit * 0.004), ...this.at(e));
    else {
      this.x -= (e.shiftKey ? e.deltaY : e.deltaX) * unit;
      this.y -= (e.shiftKey ? 0 : e.deltaY) * unit;
      this.draw();
    }
  }

  grab(e) {
    if (e.button !== 0) return;
    const end = new AbortController(), { signal } = end;
    this.pointers.set(e.pointerId, e);
    this.moved = false;
    const on = (type, f) => addEventListener(type, (m) => { if (m.pointerId === e.pointerId) f(m); }, { signal });
    on("pointermove", (m) => {
      const was = this.pointers.get(m.pointerId), dx = m.clientX - was.clientX, dy = m.clientY - was.clientY;
      if (!this.moved && Math.hypot(dx, dy) < 4) return;
      if (!this.moved) this.svg.setPointerCapture(m.pointerId);
      this.moved = this.touched = true;
      const before = this.spread();
      this.pointers.set(m.pointerId, m);
      const after = this.spread();
      if (before) return this.zoom(after.d / before.d, ...this.at(after));
      this.x += dx;
      this.y += dy;
      this.draw();
    });
    for (const type of ["pointerup", "pointercancel"]) {
      on(type, () => {
        this.pointers.delete(e.pointerId);
        end.abort();
      });
    }
  }

  // at returns where a pointer is in the graph.
  at({ clientX, clientY }) {
    const { left, top } = this.svg.getBoundingClientRect();
    return [clientX - left, clientY - top];
  }

  spread() {
    if (this.pointers.size !== 2) return null;
    const [a, b] = [...this.pointers.values()];
    return { d: Math.max(1, Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY)), clientX: (a.clientX + b.clientX) / 2, clientY: (a.clientY + b.clientY) / 2 };
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
    const { narrow } = this, pad = narrow ? narrowPad : 28, room = this.width - 2 * pad, { width: w, height: hh } = this.size;
    const whole = Math.min(room / w, (this.height - 2 * pad) / hh, 1.1);
    // At first it is readable, if need be in part; a telephone has the whole width of what is not too wide, from the top.
    const least = narrow ? Math.max(farScale, Math.min(1, room / w)) : 0.62;
    this.k = asked ? Math.max(0.03, whole) : Math.max(whole, least);
    this.x = w * this.k > room + 1 && whole < this.k ? pad : (this.width - w * this.k) / 2;
    this.y = narrow || hh * this.k > this.height - 2 * pad ? pad : (this.height - hh * this.k) / 2;
    const current = !asked && narrow && ["waiting", "in_progress"].map((st) => this.list.find((n) => this.statusOf(n) === st)).find(Boolean);
    if (current) this.reveal(current);
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
    const { x, y, k, width: w, height: hh, seen } = this;
    this.world.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${k.toFixed(4)})`);
    const view = (more) => ({ x0: (-more * w - x) / k, y0: (-more * hh - y) / k, x1: (w + more * w - x) / k, y1: (hh + more * hh - y) / k }), v = view(0);
    if (!force && seen && seen.k === k && v.x0 >= seen.x0 && v.y0 >= seen.y0 && v.x1 <= seen.x1 && v.y1 <= seen.y1) return;
    this.seen = { k, ...view(0.35) };
    const nodes = this.list.filter((n) => n.id === this.current || inside(n, this.seen));
    this.isFar = k < farScale && nodes.length > 60 || nodes.length > farNodes;
    this.svg.classList.toggle("is-far", this.isFar);
    this.svg.classList.toggle("is-small", k < 0.5);
    if (force && this.isFar) this.farDrawn = false;
    if (this.isFar) this.paintFar(); else this.paintNear(nodes, v);
  }

  // paintFar draws the whole graph at once, and again only after something changed.
  paintFar() {
    if (this.farDrawn) return;
    this.farDrawn = true;
    this.reset();
    const by = new Map(), { edges } = this;
    for (const n of this.list) {
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
  paintNear(nodes, v) {
    if (this.farDrawn) {
      this.farDrawn = false;
      fill(this.far);
    }
    const until = performance.now() + 3;
    let later = false;
    const show = (items, drawn, make) => {
      const wanted = new Map(items.map((x) => [x.id, x]));
      for (const [id, el] of drawn) {
        if (wanted.has(id)) continue;
        el.remove();
        drawn.delete(id);
      }
      for (const [id, x] of wanted) {
        if (drawn.has(id)) continue;
        if (inside(x, v) || id === this.current || performance.now() < until) drawn.set(id, make(x));
        else later = true;
      }
    };
    show(nodes, this.drawn, (n) => this.nodeLayer.appendChild(this.node(n)));
    show(this.edges.filter((e) => inside(e, this.seen)), this.edgesDrawn, (e) => this.edgeLayer.appendChild(this.edge(e)));
    if (!later) return;
    this.seen = null;
    this.draw();
  }

  statusOf(n) {
    if (n.kind === "input") return "input";
    if (!n.members) return this.state.tasks.get(n.id)?.status ?? "pending";
    const all = new Set(n.members.map((m) => this.state.tasks.get(m)?.status ?? "pending"));
    return ["failed", "in_progress", "waiting", "ready", "pending", "blocked", "completed"].find((st) => all.has(st)) ?? [...all][0];
  }

  node(n) {
    const t = this.state.tasks.get(n.id), status = this.statusOf(n), label = t?.label ?? n.label ?? "";
    const fold = n.members, input = n.kind === "input";
    const g = s("g", { class: `node n-${status} k-${n.kind} l-${label || "none"}`, transform: `translate(${n.x} ${n.y})`, tabindex: n.id === this.current ? 0 : -1, role: "button", data: { id: n.id } });
    if (n.id === this.selected) g.classList.add("selected");
    if (fold) g.append(s("rect", { class: "back", x: 5, y: 5, width: n.w, height: n.h, rx: 8 }));
    g.append(s("rect", { class: "body", width: n.w, height: n.h, rx: 8 }), s("path", { class: "bar", d: `M0 8a8 8 0 0 1 4-6.9v${n.h - 2.2}a8 8 0 0 1-4-6.9z` }));
    const kids = t && !fold ? childrenOf(t) : {}, all = kids.working + kids.ended, held = t && holdersOf(t);
    const family = all > 0 && (kids.working > 0 ? kids.working + " working, " + kids.ended + " ended" : all + (all > 1 ? " children" : " child"));
    if (family) g.append(s("g", { class: "kids", transform: `translate(${n.w - 10} 0)` }, s("rect", { x: -6 * family.length - 6, y: -9, width: 6 * family.length + 12, height: 17, rx: 8 }), s("text", { class: "sub", y: 4, "text-anchor": "end" }, family)));
    if (!input) g.append(s("g", { transform: "translate(13 12)" }, statusIcon(status, { width: 13, height: 13 })));
    const words = [fold ? this.countOf(n) : held || n.agent, !held && t?.model].filter(Boolean), text = (cls, x, y, words) => s("text", { class: cls, x, y }, words);
    g.append(s("text", { class: "title" }, n.lines.map((line, i) => s("tspan", { x: input ? 16 : 33, y: (input ? 24 : 23) + titleLine * i }, line))));
    if (!input) g.append(text("sub", 14, n.h - (n.calls ? 41 : 26), clipped(words.join(" · "), n.w - 22)), n.calls && text("sub tools", 14, n.h - 25, clipped(this.callsOf(n), n.w - 22)), text("sub num", 14, n.h - 9, this.numbers(n, t)));
    if (label) g.append(s("g", { class: "tag", transform: `translate(${n.w - 20} ${n.h - 20})` }, labelShape(label)));
    g.append(s("text", { class: "unseen", x: 14, y: 20 }, ", " + [input ? "input" : t ? stateOf(t) : statusWord(status), label && "label " + label, family && "children: " + family, held, n.calls && this.callsOf(n), fold ? "folded, Space unfolds" : ""].filter(Boolean).join(", ")));
    return g;
  }

  // callsOf names the tools that the task of a node has called.
  callsOf(n) {
    const tools = n.members ? "" : toolsOf(this.state.tasks.get(n.id) ?? {});
    return tools && "calls " + tools;
  }

  // countOf says how many rounds of a fold have begun or items are needed, and while the run works how many there may be.
  countOf(n) {
    const { live, tasks } = this.state, list = n.kind === "list", begun = n.parts.filter(([id]) => tasks.get(id)?.startedAt || tasks.get(id)?.status === "completed");
    let count = new Set((list ? n.parts.filter(([id]) => tasks.get(id)?.status !== "not_needed") : begun).map((p) => p[1])).size;
    if (live && !begun[0] && count === n.most) count = 0; // the list is not there yet
    return count + (live && n.most > count ? " of at most " + n.most : "") + (list ? " items" : " rounds");
  }

  numbers(n, t) {
    if (n.members) {
      const done = n.members.filter((m) => this.state.tasks.get(m)?.status === "completed").length;
      return done + " of " + n.members.length + " completed";
    }
    if (!t) return "";
    const cost = this.state.taskCost(t);
    return clip([t.status === "waiting" && stateOf(t), t.startedAt && duration(tookMs(t)), tokensOf(t) > 0 && compact(tokensOf(t)) + " tok", cost > 0 && money(cost)].filter(Boolean).join(" · "), n.w - 38, subFont);
  }

  edge(e) {
    const lit = [e.from, e.to].includes(this.selected), held = this.held?.get(e.from + "\n" + e.to);
    const n = e.points.length / 2, [[x, y], [u, v]] = [e.points[Math.floor(n - 0.5)], e.points[Math.floor(n)]];
    return s("g", { class: `edge e-${e.kind}` + (held ? " e-held" : "") + (lit ? " lit" : ""), data: { edge: e.id } }, line(route(e.points), this.edgeName(e) + (held === "▒" ? ": withheld" : held ? ": withheld in part" : "")),
      held && s("text", { class: "held", x: (x + u) / 2, y: (y + v) / 2 }, held));
  }

  // drawHeld draws the edges again after context was withheld along some. An edge of a fold has the marks of its tasks.
  drawHeld() {
    const { withheld: n, held } = this.state;
    if (n === this.heldDrawn) return;
    this.heldDrawn = n;
    this.held = new Map();
    for (const [edge, mark] of held) {
      const key = edge.split("\n").map((id) => this.owner.get(id)).join("\n");
      if (this.held.get(key) !== "▒") this.held.set(key, mark);
    }
    fill(this.edgeLayer);
    this.edgesDrawn.clear();
    this.draw(true);
  }

  // drawWays draws a line between tasks of which one has read a handoff of the other.
  drawWays() {
    const shown = new Map(), node = (id) => this.nodes.get(this.owner.get(id));
    this.waysDrawn = this.state.ways.size;
    for (const w of [...this.doc.sent ?? [], ...this.state.ways.values()]) {
      const a = node(w.from), b = node(w.to);
      if (a && b && a !== b && shown.size < mostWays) shown.set(a.id + " " + b.id, [a, b]);
    }
    fill(this.wayLayer, [...shown.values()].map(([a, b]) => s("g", { class: "edge way", data: { from: a.id, to: b.id } }, line(bow(a, b), this.edgeName({ from: a.id, to: b.id, kind: "sent while working" })))));
  }

  edgeName(e) {
    const name = (id) => this.nodes.get(id)?.title ?? id;
    return name(e.from) + " → " + name(e.to) + (e.kind === "result" ? "" : ` (${e.kind})`);
  }

  click(e) {
    if (this.moved) return;
    const node = e.target.closest("[data-id]"), edge = e.target.closest("[data-edge]"), way = e.target.closest(".way");
    if (node) this.open(node.dataset.id);
    else if (way) this.openEdge(way.dataset);
    else if (edge) this.openEdge(this.edges[edge.dataset.edge]);
    else if (this.isFar) {
      const [px, py] = this.at(e), x = (px - this.x) / this.k, y = (py - this.y) / this.k;
      const hit = this.list.find((n) => inside(n, { x0: x, y0: y, x1: x, y1: y }));
      if (hit) this.open(hit.id);
    }
  }

  open(id) {
    const n = this.nodes.get(id);
    if (n?.members) this.toggle(n.title);
    else if (n?.kind === "input") this.page.app.go(this.page.link("flow"));
    else this.page.openTask(id);
  }

  openEdge(e) { this.page.app.go(this.page.edgeLink(e.from, e.to)); }

  toggle(title) {
    if (!this.expanded.delete(title)) this.expanded.add(title);
    this.take(this.doc);
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
    else if (e.key === " " && (n?.members || n?.fold)) this.toggle(n.members ? n.title : n.fold);
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
    const linked = this.edges.flatMap(({ a, b }) => dy > 0 && a === n ? b : dy < 0 && b === n ? a : []);
    const all = linked.length > 0 ? linked : this.list.filter((m) => dy ? (m.layer - n.layer) * dy > 0 : m.layer === n.layer && (m.x - n.x) * dx > 0);
    return all.sort((a, b) => Math.hypot(a.x - n.x, a.y - n.y) - Math.hypot(b.x - n.x, b.y - n.y))[0];
  }

  nextEdge(n) {
    const all = [...this.edges.filter((e) => e.b === n), ...this.edges.filter((e) => e.a === n)];
    if (all.length === 0) return;
    this.edgeAt = this.edgeOf === n.id ? (this.edgeAt + 1) % all.length : 0;
    this.edgeOf = n.id;
    this.page.keepFocus = true;
    this.openEdge(all[this.edgeAt]);
  }

  focusNode(n) {
    if (!n) return;
    this.setCurrent(n.id);
    this.reveal(n);
    this.paint(true);
    this.focus();
  }

  reveal(n) {
    if (this.k < farScale) this.zoom(0.6 / this.k);
    const into = (at, size, whole, pad) => at < pad ? pad - at : Math.min(0, whole - pad - at - size);
    this.x += into(n.x * this.k + this.x, n.w * this.k, this.width, this.narrow ? narrowPad : 24);
    this.y += into(n.y * this.k + this.y, n.h * this.k, this.height, this.narrow ? 60 : 24); // above the legend
  }

  select(id) {
    id = this.owner?.get(id) ?? id;
    if (this.selected === id) return;
    this.selected = id;
    this.edgesDrawn.forEach((el, i) => el.classList.toggle("lit", [this.edges[i].from, this.edges[i].to].includes(id)));
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
    if (!this.doc) return;
    if (this.state.shape !== this.shape) this.load();
    else if ([...changed].some((id) => this.nodes.has(id) && uncounted(this.nodes.get(id).calls) !== uncounted(this.callsOf(this.nodes.get(id))))) this.take(this.doc); // another tool
    if (this.state.ways.size !== this.waysDrawn) this.drawWays();
    this.drawHeld();
    if (this.isFar) {
      if (changed.size > 0 || whole) this.draw(true);
      return;
    }
    const dirty = new Set(whole ? this.drawn.keys() : [...changed].map((id) => this.owner.get(id)));
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

// uncounted leaves out how often a tool was called.
function uncounted(calls) { return calls.replace(/ ×\d+/g, ""); }

// clipped returns a text that fits, and names the whole one where the mouse points.
function clipped(text, room) {
  const shown = clip(text, room, subFont);
  return [shown, shown !== text && s("title", null, text)];
}

function legend() {
  return h("div", { class: "legend", "aria-hidden": "true" }, labels.map((l) => h("span", { class: "l-" + l }, s("svg", { viewBox: "0 0 12 12" }, labelShape(l)), l)), ["◐ in part", "▒ withheld"].map((x) => h("span", null, x)));
}

// inside reports whether a node or the box of an edge is in a part of the picture.
function inside(n, v) { return n.x < v.x1 && n.x + n.w > v.x0 && n.y < v.y1 && n.y + n.h > v.y0; }

function box(points) {
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]), x = Math.min(...xs) - 1, y = Math.min(...ys) - 1;
  return { x, y, w: Math.max(...xs) + 1 - x, h: Math.max(...ys) + 1 - y };
}

// route draws an edge through its points, at each of them straight down or up.
function route(points) {
  return "M" + points[0].join(" ") + points.slice(1).map(([u, v], i) => {
    const [x, y] = points[i];
    return `C${x} ${(y + v) / 2} ${u} ${(y + v) / 2} ${u} ${v}`;
  }).join("");
}

// fold returns the nodes and edges to draw: for each loop and list that is not expanded one node, with its tasks as
// members. owner has the node that stands for each task.
function fold(doc, expanded) {
  const nodes = new Map(), owner = new Map(), edges = new Map(), folds = new Map(doc.folds?.map((f) => [f.title, f]));
  for (const n of doc.nodes) {
    const within = n.folds ?? [], i = within.findIndex((p) => !expanded.has(p.fold)), part = within[i], id = part ? "fold:" + part.fold : n.id;
    owner.set(n.id, id);
    if (!nodes.has(id)) nodes.set(id, part ? { ...folds.get(part.fold), id, members: [], parts: [], fold: within[i - 1]?.fold } : { ...n, fold: within.at(-1)?.fold });
    if (!part) continue;
    const f = nodes.get(id);
    f.members.push(n.id);
    if (part.number) f.parts.push([n.id, part.number]);
    f.label = labels[Math.max(labels.indexOf(f.label), labels.indexOf(n.label))];
  }
  for (const e of doc.edges) { // those that deliver most come first
    const from = owner.get(e.from), to = owner.get(e.to), key = from + "\n" + to;
    if (from !== to && !edges.has(key)) edges.set(key, { from, to, kind: e.kind });
  }
  return { nodes, owner, edges: [...edges.values()] };
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
