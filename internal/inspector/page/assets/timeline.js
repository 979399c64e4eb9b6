// When each task worked: a row for each, in the order in which they began.

import { bdi, duration, empty, fill, h, statusIcon } from "./dom.js";
import { VirtualList } from "./list.js";
import { nameOf, stateOf, tookMs } from "./state.js";

export class TimelineView {
  constructor(page) {
    this.page = page;
    this.state = page.state;
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.list = new VirtualList({
      height: 28, label: "Timeline", role: "listbox", head: null,
      key: (i) => this.rows[i].id, row: (i) => this.row(this.rows[i]), onopen: (i) => this.page.openTask(this.rows[i].id),
    });
    this.none = h("div");
    this.el = h("div", { class: "timeline" }, h("div", { class: "tl-head" }, h("span", { class: "tl-name" }, "Task"), this.axis), this.none, this.list.el);
    this.draw();
    if (this.state.live) this.timer = setInterval(() => this.draw(), 1000);
  }

  close() { clearInterval(this.timer); }

  draw() {
    const { state } = this, { doc } = state;
    this.rows = [...state.steps, ...state.order].filter((t) => t.startedAt).sort((a, b) => Date.parse(a.startedAt) - Date.parse(b.startedAt) || (a.title < b.title ? -1 : 1));
    const first = this.rows.length > 0 ? Date.parse(this.rows[0].startedAt) : Date.parse(doc.startedAt);
    let last = first + 1;
    for (const t of this.rows) if (t.endedAt) last = Math.max(last, Date.parse(t.endedAt));
    if (state.live) last = Math.max(last, Date.now());
    this.t0 = first;
    this.span = last - first;
    this.ticks();
    this.list.reset(this.rows.length, true);
    fill(this.none, this.rows.length === 0 && empty("Nothing has begun yet", "Each task gets a bar here when it starts."));
    if (!state.live) clearInterval(this.timer);
  }

  ticks() {
    const step = niceStep(this.span / (this.el.clientWidth > 700 ? 8 : 3)), ticks = [];
    for (let at = 0; at <= this.span && ticks.length < 20; at += step) ticks.push(h("span", { class: "tick", style: { left: at / this.span * 100 + "%" } }, duration(at) || "0"));
    this.axis.style.setProperty("--step", step / this.span * 100 + "%");
    this.list.el.style.setProperty("--step", step / this.span * 100 + "%");
    fill(this.axis, ticks);
  }

  row(t) {
    const a = Date.parse(t.startedAt) - this.t0, took = tookMs(t) ?? 0;
    const left = a / this.span * 100, width = Math.max(0.15, Math.min(100 - left, took / this.span * 100));
    const late = left + width > 82;
    return h("div", { class: "tl-row", role: "option", "aria-selected": this.selected === t.id ? "true" : "false" },
      h("span", { class: "tl-name" }, statusIcon(t.status), bdi(nameOf(t)), h("span", { class: "sr" }, `, ${stateOf(t)}, began after ${duration(a)}, took `)),
      h("span", { class: "tl-track" }, h("i", { class: "tl-bar b-" + t.status, style: { left: left + "%", width: width + "%" } }),
        h("span", { class: "tl-took num", style: late ? { right: 100 - left + "%" } : { left: left + width + "%" } }, duration(took), t.attempts > 1 ? ` ×${t.attempts}` : "")));
  }

  select(id) {
    this.selected = id;
    this.list.reset(this.rows.length, true);
    const i = this.rows.findIndex((t) => t.id === id);
    if (i >= 0) this.list.reveal(i);
  }

  focus() { this.list.reveal(this.list.current, true); }

  update(changed, whole) {
    if (changed.size > 0 || whole) this.drawing ??= setTimeout(() => { this.drawing = undefined; this.draw(); }, 150);
  }
}

function niceStep(ms) {
  const base = 10 ** Math.floor(Math.log10(Math.max(1, ms)));
  for (const f of [1, 2, 5, 10]) if (base * f >= ms) return base * f;
  return base * 10;
}
