// The tasks of a run in a table of which only the visible rows exist.

import { bdi, change, compact, count, duration, fill, h, labels, labelChip, money, plural, statusIcon } from "./dom.js";
import { VirtualList, matching } from "./list.js";
import { nameOf, stateOf, tokensOf, tookMs } from "./state.js";

const columns = [
  ["state", "State", (t) => t.status], ["title", "Task", (t) => nameOf(t).toLowerCase()], ["agent", "Agent", (t) => t.assignee ?? ""], ["model", "Model", (t) => t.model],
  ["label", "Label", (t) => labels.indexOf(t.label)], ["took", "Took", (t) => tookMs(t) ?? -1], ["tokens", "Tokens", tokensOf], ["cost", "Cost", null], ["tries", "Attempts", (t) => t.attempts ?? 0],
];

export class TasksView {
  constructor(page) {
    this.page = page;
    this.state = page.state;
    this.filter = h("input", { type: "search", "aria-label": "Filter tasks", placeholder: "Filter by task, agent, state, model or label  ( / )", oninput: () => this.collect(true) });
    this.found = h("span", { class: "muted num", role: "status" });
    this.head = h("div", { class: "tr th", role: "row" });
    this.list = new VirtualList({
      height: (width) => width < 520 ? 58 : 36, label: "Tasks", head: this.head,
      key: (i) => this.rows[i].id, row: (i) => this.row(this.rows[i]), onopen: (i) => this.page.openTask(this.rows[i].id),
    });
    this.el = h("div", { class: "tasks-view" }, h("div", { class: "toolbar" }, this.filter, this.found), this.list.el);
    this.drawHead();
    this.collect(true);
  }

  focusFilter() { this.filter.focus(); }

  drawHead() {
    fill(this.head, columns.map(([key, title]) => h("span", { role: "columnheader", class: "c-" + key, "aria-sort": this.sort === key ? this.down ? "descending" : "ascending" : "none" },
      h("button", { type: "button", class: "sort", onclick: () => this.sortBy(key) }, title, this.sort === key && h("span", { "aria-hidden": "true" }, this.down ? " ↓" : " ↑")))));
  }

  sortBy(key) {
    if (this.sort === key && this.down) this.sort = undefined;
    else {
      this.down = this.sort === key;
      this.sort = key;
    }
    this.drawHead();
    this.collect(true);
  }

  collect(fresh) {
    const all = [...this.state.steps, ...this.state.order];
    this.rows = matching(this.filter, all, (t) => `${nameOf(t)} ${t.title} ${t.assignee} ${stateOf(t)} ${t.model} ${t.label ?? ""}`);
    if (this.sort) {
      const value = this.sort === "cost" ? (t) => this.state.taskCost(t) ?? -1 : columns.find(([k]) => k === this.sort)[2];
      const by = this.down ? -1 : 1, keys = new Map(this.rows.map((t) => [t, value(t)]));
      this.rows = [...this.rows].sort((a, b) => (keys.get(a) < keys.get(b) ? -1 : keys.get(a) > keys.get(b) ? 1 : 0) * by);
    }
    fill(this.found, this.filter.value && count(this.rows.length) + " of ", plural(all.length, "task"));
    this.list.reset(this.rows.length, fresh);
  }

  row(t) {
    const cell = (key, ...content) => h("span", { role: "gridcell", class: "c-" + key }, content);
    const cost = this.state.taskCost(t);
    const el = h("div", { class: "tr", role: "row", "aria-selected": this.selected === t.id ? "true" : "false" },
      cell("state", statusIcon(t.status), h("span", { class: "word", title: stateOf(t) }, bdi(stateOf(t)))),
      cell("title", bdi(nameOf(t)), t.step && h("span", { class: "tag" }, "coordinator")),
      cell("agent", bdi(t.assignee ?? "")), cell("model", bdi(t.model ?? "")), cell("label", labelChip(t.label)),
      cell("took", took(t)), cell("tokens", tokensOf(t) ? compact(tokensOf(t)) : ""), cell("cost", cost > 0 ? money(cost) : ""), cell("tries", t.attempts > 1 ? "×" + t.attempts : ""));
    return el;
  }

  select(id) {
    this.selected = id;
    const i = this.rows.findIndex((t) => t.id === id);
    this.list.reset(this.rows.length, true);
    if (i >= 0) this.list.reveal(i);
  }

  focus() { this.list.reveal(this.list.current, true); }

  // tick shows the time of the tasks that are not over.
  tick() {
    for (const t of this.rows) if (t.startedAt && !t.endedAt) change(this.list.rows.get(t.id)?.el.querySelector(".c-took"), took(t));
  }

  update(changed, whole) {
    if (whole || this.rows.length !== this.state.order.length + this.state.steps.length) this.collect(true);
    else for (const id of changed) this.list.replace(id);
  }
}

function took(t) { return duration(tookMs(t)); }
