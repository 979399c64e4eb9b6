// A list of rows of equal height, of which only the visible ones exist.

import { clicks, h } from "./dom.js";

// matching returns those of a list whose text has all words of a filter.
export function matching(filter, list, textOf) {
  const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? list : list.filter((x) => {
    const text = textOf(x).toLowerCase();
    return words.every((w) => text.includes(w));
  });
}

export class VirtualList {
  // row(i) returns the element of row i; key(i) identifies it, so that it can be kept. The height
  // of a row is a number, or a function of the width of the list.
  constructor({ row, key, height, label, role, onopen, head }) {
    this.heightOf = typeof height === "function" ? height : () => height;
    Object.assign(this, { row, key, onopen, height: this.heightOf(innerWidth) });
    this.isGrid = !role;
    this.n = 0;
    this.current = 0;
    this.rows = new Map();
    this.space = h("div", { role: "presentation" });
    this.body = h("div", { class: "vl-body", role: role ? "presentation" : "rowgroup" }, this.space);
    this.el = h("div", { class: "vl", role: role ?? "grid", "aria-label": label, tabindex: "-1" }, head && h("div", { role: "rowgroup", class: "vl-head" }, head), this.body);
    this.el.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.el.addEventListener("keydown", (e) => this.press(e));
    this.el.addEventListener("focusin", (e) => {
      const i = Number(e.target.closest?.("[data-i]")?.dataset.i);
      if (i >= 0) this.setCurrent(i);
    });
    clicks(this.el, (e) => {
      const r = e.target.closest("[data-i]");
      if (r && !e.target.closest("a,button")) this.onopen?.(Number(r.dataset.i), e);
    });
    new ResizeObserver(() => {
      const now = this.heightOf(this.el.clientWidth);
      if (now === this.height) return this.schedule();
      this.height = now;
      this.reset(this.n, true);
    }).observe(this.el);
  }

  schedule() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.render();
    });
  }

  // reset shows n rows. Rows with the same key are kept unless fresh.
  reset(n, fresh) {
    this.n = n;
    this.current = Math.min(this.current, Math.max(0, n - 1));
    if (fresh) this.clear();
    if (this.isGrid) this.el.setAttribute("aria-rowcount", n + 1);
    this.space.style.setProperty("height", n * this.height + "px");
    this.render();
  }

  clear() {
    for (const { el } of this.rows.values()) el.remove();
    this.rows.clear();
  }

  setCurrent(i) {
    this.current = i;
    for (const r of this.rows.values()) r.el.tabIndex = r.i === i ? 0 : -1;
  }

  render() {
    const top = this.el.scrollTop, view = this.el.clientHeight || 600;
    const from = Math.max(0, Math.floor(top / this.height) - 6), to = Math.min(this.n, Math.ceil((top + view) / this.height) + 6);
    const keep = new Set();
    for (let i = from; i < to; i++) this.show(i, keep);
    if (this.current < this.n && (this.current < from || this.current >= to)) this.show(this.current, keep);
    for (const [k, r] of this.rows) {
      if (keep.has(k)) continue;
      r.el.remove();
      this.rows.delete(k);
    }
  }

  show(i, keep) {
    const k = this.key(i);
    keep.add(k);
    let r = this.rows.get(k);
    if (!r) {
      r = { el: this.row(i), i: -1 };
      r.el.classList.add("vl-row");
      this.rows.set(k, r);
      this.body.append(r.el);
    }
    if (r.i !== i) {
      r.i = i;
      r.el.dataset.i = i;
      r.el.setAttribute(this.isGrid ? "aria-rowindex" : "aria-posinset", i + (this.isGrid ? 2 : 1));
      if (!this.isGrid) r.el.setAttribute("aria-setsize", this.n);
      r.el.style.setProperty("top", i * this.height + "px");
    }
    r.el.tabIndex = i === this.current ? 0 : -1;
  }

  // replace makes the row of a key again.
  replace(k) {
    const old = this.rows.get(k);
    if (!old) return;
    const focused = old.el.contains(document.activeElement);
    this.rows.delete(k);
    const keep = new Set();
    this.show(old.i, keep);
    const now = this.rows.get(k);
    old.el.replaceWith(now.el);
    if (focused) now.el.focus({ preventScroll: true });
  }

  reveal(i, focus) {
    const y = i * this.height;
    if (y < this.el.scrollTop || y + this.height * 2 > this.el.scrollTop + this.el.clientHeight) this.el.scrollTop = Math.max(0, y - this.el.clientHeight / 3);
    this.setCurrent(i);
    this.render();
    if (focus) [...this.rows.values()].find((r) => r.i === i)?.el.focus({ preventScroll: true });
  }

  press(e) {
    if (e.target.closest("input,textarea,select")) return;
    const page = Math.max(1, Math.floor(this.el.clientHeight / this.height) - 1);
    const to = { ArrowDown: this.current + 1, ArrowUp: this.current - 1, PageDown: this.current + page, PageUp: this.current - page, Home: 0, End: this.n - 1 }[e.key];
    if (to !== undefined && this.n > 0) {
      e.preventDefault();
      this.reveal(Math.max(0, Math.min(this.n - 1, to)), true);
    } else if ((e.key === "Enter" || e.key === " ") && e.target.dataset.i !== undefined) {
      e.preventDefault();
      this.onopen?.(Number(e.target.dataset.i), e);
    }
  }
}
