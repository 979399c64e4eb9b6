// A text viewer: lines are wrapped and windowed, each range can have a source, and any part can be
// selected with the mouse or the keyboard, in characters of the original text.

import { button, copy, copyable, fill, h, note, shown, splitHidden, symbolOf, toast } from "./dom.js";

// howToFollow says how to ask where a text comes from.
export const howToFollow = "Click a word of a prompt or a result, or select some text, and press W";

const rowHeight = 20;
let charWidth = 0;

function measure(el) {
  if (charWidth) return charWidth;
  const probe = h("span", { class: "tv-row tv-probe" }, "0".repeat(100));
  el.append(probe);
  charWidth = probe.getBoundingClientRect().width / 100;
  probe.remove();
  if (!charWidth) return 8;
  return charWidth;
}

const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/;

const widths = new Map([["\t", 4]]);

function cells(c) {
  let n = widths.get(c);
  if (n === undefined) {
    n = splitHidden(c)[0]?.[1] ? symbolOf(c).length : wide.test(c) ? 2 : 1;
    widths.set(c, n);
  }
  return n;
}

const isDigit = (c) => c >= 0x30 && c <= 0x39;

// wrap cuts a text into rows of at most cols cells, after a space where there is one.
function wrap(text, cols) {
  const rows = [];
  let line = 0;
  while (line <= text.length) {
    let end = text.indexOf("\n", line);
    if (end < 0) end = text.length;
    let at = line, width = 0, space = -1;
    for (let i = line; i < end;) {
      const c = text.charCodeAt(i), plain = c >= 0x20 && c < 0x7f;
      const step = !plain && text.codePointAt(i) > 0xffff ? 2 : 1;
      width += plain ? 1 : cells(text.slice(i, i + step));
      if (width > cols && i > at) {
        at = rows[rows.push([at, space > at ? space : i]) - 1][1];
        i = at;
        width = 0;
        space = -1;
        continue;
      }
      i += step;
      if (c === 0x20 || c === 0x2c && !isDigit(text.charCodeAt(i))) space = i;
    }
    rows.push([at, end]);
    line = end + 1;
  }
  if (rows.length > 1 && text.endsWith("\n")) rows.pop(); // the end of the last line
  return rows;
}

// charAt returns the index of the character at a byte of the text in UTF-8.
export function charAt(text, byte) {
  let n = 0;
  for (let i = 0; i < text.length; i++) {
    if (n >= byte) return i;
    const c = text.charCodeAt(i);
    if (c < 0x80) n += 1;
    else if (c < 0x800) n += 2;
    else if (c >= 0xd800 && c < 0xdc00) { n += 4; i++; } else n += 3;
  }
  return text.length;
}

const marked = /\[REDACTED:[^\]\n]{1,64}\]|\[withheld[^\]\n]{0,64}\]/g;

export class TextView {
  // pieces are {text, source, cls, note}; a piece with a note and no text is a withheld block. The head says what the
  // text is, tools are buttons beside that.
  constructor({ label, head, tools, pieces, onhover, onpick, onselect, most }) {
    Object.assign(this, { onhover, onpick, onselect });
    this.most = most ?? 26;
    this.space = h("div", { class: "tv-space" });
    this.box = h("div", { class: "tv-box", tabindex: "0", role: "document", "aria-label": label + ". Arrow keys move by word and line, Shift selects" + (onselect ? ", W follows the text to its source." : ".") }, this.space);
    this.el = h("div", { class: "tv" }, h("div", { class: "tv-head" }, h("div", { class: "tv-about" }, head ?? label), h("div", { class: "tv-tools" }, tools, button("Copy", () => copy(this.text), { class: "small", "aria-label": "Copy: " + label }))), this.box);
    this.el.view = this;
    this.rows = new Map();
    this.cursor = 0;
    this.anchor = 0;
    this.listen();
    this.setPieces(pieces);
  }

  listen() {
    this.box.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.box.addEventListener("keydown", (e) => this.press(e));
    this.box.addEventListener("pointerover", (e) => this.over(e.target));
    this.box.addEventListener("pointerleave", () => this.onhover?.(null));
    this.box.addEventListener("mousedown", (e) => {
      if (e.shiftKey) document.getSelection()?.removeAllRanges(); // click takes the end of the selection
      else this.anchor = this.cursor;
      this.marked = null;
      this.pressed = true; // rows that a selection is in must stay until it is made
      addEventListener("mouseup", () => { this.pressed = false; }, { once: true, capture: true });
    });
    this.box.addEventListener("click", (e) => this.click(e));
    this.onselection = () => this.selected();
    document.addEventListener("selectionchange", this.onselection);
    this.oncopy = (e) => this.copied(e);
    document.addEventListener("copy", this.oncopy);
    this.observer = new ResizeObserver(() => this.relayout());
    this.observer.observe(this.box);
  }

  // close ends the view's part in events of the page.
  close() {
    document.removeEventListener("selectionchange", this.onselection);
    document.removeEventListener("copy", this.oncopy);
    this.observer.disconnect();
  }

  setPieces(pieces) {
    this.pieces = [];
    let at = 0;
    for (const p of pieces) {
      const text = p.text ?? "";
      if (text === "" && !p.note) continue;
      const shown = p.note ? "▒ " + p.note : text;
      this.pieces.push({ ...p, shown, start: at, end: at + shown.length });
      at += shown.length;
    }
    this.text = this.pieces.map((p) => p.shown).join("");
    this.cols = 0;
    this.relayout();
  }

  // append adds text to the last piece: what arrives while a model writes.
  setText(text) {
    if (this.text === text) return;
    const end = this.box.scrollTop + this.box.clientHeight >= this.box.scrollHeight - 30;
    this.setPieces([{ text }]);
    if (end) this.box.scrollTop = this.box.scrollHeight;
  }

  relayout() {
    const width = this.box.clientWidth;
    if (!width) return;
    const cols = Math.max(16, Math.floor((width - 22) / measure(this.box)));
    if (cols === this.cols) return this.schedule();
    this.cols = cols;
    this.lines = wrap(this.text, cols);
    this.space.style.setProperty("height", this.lines.length * rowHeight + "px");
    this.box.style.setProperty("height", Math.min(this.lines.length, this.most) * rowHeight + 16 + "px");
    this.schedule(true);
    if (this.pending) this.show(...this.pending);
  }

  schedule(fresh) {
    this.fresh ||= fresh;
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.render();
    });
  }

  render() {
    if (!this.lines) return;
    const top = this.box.scrollTop, from = Math.max(0, Math.floor(top / rowHeight) - 12);
    const to = Math.min(this.lines.length, Math.ceil((top + this.box.clientHeight) / rowHeight) + 12);
    const sel = document.getSelection();
    const held = new Set([sel?.anchorNode, sel?.focusNode].map((n) => (n?.nodeType === 3 ? n.parentElement : n)?.closest?.(".tv-row")));
    const fresh = this.fresh && !this.pressed;
    for (const [i, el] of this.rows) {
      if (!fresh && (i >= from && i < to || held.has(el))) continue;
      el.remove();
      this.rows.delete(i);
    }
    if (fresh) this.fresh = false;
    // The rows of a selection are in their order, or the browser would select others between its ends.
    let next = [...this.rows].reduce((least, [i, el]) => i >= to && i < least[0] ? [i, el] : least, [Infinity, null])[1];
    for (let i = to - 1; i >= from; i--) {
      if (!this.rows.has(i)) this.rows.set(i, this.space.insertBefore(this.row(i), next));
      next = this.rows.get(i);
    }
  }

  pieceAt(pos) {
    let lo = 0, hi = this.pieces.length - 1;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (this.pieces[mid].end <= pos) lo = mid + 1; else hi = mid;
    }
    return lo;
  }

  // cuts returns the positions in [from, to) where the look of the text changes.
  cuts(from, to) {
    const cuts = new Set([from, to]);
    const [a, b] = this.range();
    for (const x of [a, b, ...(this.marked ?? [])]) if (x > from && x < to) cuts.add(x);
    for (const m of this.text.slice(from, to).matchAll(marked)) {
      cuts.add(from + m.index);
      cuts.add(from + m.index + m[0].length);
    }
    for (let i = this.pieceAt(from); i < this.pieces.length && this.pieces[i].start < to; i++) if (this.pieces[i].start > from) cuts.add(this.pieces[i].start);
    return [...cuts].sort((x, y) => x - y);
  }

  row(i) {
    const [from, to] = this.lines[i];
    const row = h("div", { class: "tv-row" });
    row.style.setProperty("top", i * rowHeight + "px");
    row.rowStart = from;
    if (from === to) {
      row.append(h("br")); // a place for the end of a selection
      return row;
    }
    const cuts = this.cuts(from, to), [a, b] = this.range();
    for (let k = 0; k + 1 < cuts.length; k++) {
      const x = cuts[k], y = cuts[k + 1], n = this.pieceAt(x), p = this.pieces[n];
      const text = this.text.slice(x, y);
      const cls = ["r"];
      if (p.cls) cls.push(p.cls);
      if (x === p.start && p.source >= 0) cls.push("r-start");
      if (p.note) cls.push("r-withheld");
      if (text.startsWith("[REDACTED:") || text.startsWith("[withheld")) cls.push("r-redacted");
      if (a < b && x >= a && y <= b) cls.push("r-sel");
      if (this.marked && x >= this.marked[0] && y <= this.marked[1]) cls.push("r-mark");
      const span = h("span", { class: cls.join(" "), data: { p: n } });
      if (a === b && x === this.cursor) span.classList.add("r-caret");
      if (x === p.start && p.badge) span.append(h("sup", { class: "r-badge", "aria-hidden": "true" }, p.badge));
      span.from = x;
      span.append(...shown(text));
      row.append(span);
    }
    return row;
  }

  over(target) {
    const span = target.closest?.("[data-p]");
    if (!span) return;
    this.onhover?.(this.pieces[span.dataset.p], span);
  }

  click(e) {
    const pos = this.posOf(document.getSelection()?.focusNode, document.getSelection()?.focusOffset);
    if (pos !== null && document.getSelection().isCollapsed) {
      this.cursor = pos;
      if (!e.shiftKey) this.anchor = pos;
      this.schedule(true);
    }
    const span = e.target.closest?.("[data-p]");
    if (span && document.getSelection().isCollapsed) this.onpick?.(this.pieces[span.dataset.p], span);
  }

  // posOf returns the position in the text of a place in the document, or null if it is elsewhere.
  posOf(node, offset) {
    if (!node || !this.space.contains(node)) return null;
    if (node.nodeType !== 3) {
      const before = node !== this.space && node.childNodes[offset - 1];
      if (before) return this.posOf(before, before.length ?? before.childNodes.length);
      const child = node.childNodes[offset] ?? node;
      const row = child.closest?.(".tv-row") ?? node.closest?.(".tv-row");
      const span = child.closest?.("[data-p]");
      return span ? span.from : row ? row.rowStart : null;
    }
    const span = node.parentElement.closest("[data-p]");
    if (!span) return node.parentElement.closest(".tv-row")?.rowStart ?? null;
    let pos = span.from;
    for (const c of span.childNodes) {
      if (c === node) return pos + offset;
      if (c.nodeType === 3) pos += c.length;
      else if (c.classList.contains("r-ctl")) {
        if (c.contains(node)) return pos + (offset > 0 ? c.hides.length : 0);
        pos += c.hides.length;
      }
    }
    return pos;
  }

  // taken takes over what the mouse selected, and reports whether it has.
  taken() {
    const sel = document.getSelection();
    if (!sel || sel.isCollapsed) return false;
    const a = this.posOf(sel.anchorNode, sel.anchorOffset), b = this.posOf(sel.focusNode, sel.focusOffset);
    if (a !== null) this.mouse = a;
    if (b === null || this.mouse === undefined) return false;
    this.anchor = this.mouse;
    this.cursor = b;
    return true;
  }

  selected() {
    const words = this.taken() ? this.selection() : this.selectedWords();
    if (words) this.onselect?.(words, document.getSelection().getRangeAt(0).getBoundingClientRect());
  }

  // selectedWords returns what is selected where the text is shown in another form.
  selectedWords() {
    const sel = document.getSelection();
    return this.rendered?.contains(sel.anchorNode) && this.rendered.contains(sel.focusNode) ? sel.toString() : "";
  }

  range() { return [Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor)]; }

  // selection returns the selected text, without what is withheld.
  selection() {
    const [a, b] = this.range();
    return this.pieces.filter((p) => !p.note && p.end > a && p.start < b).map((p) => this.text.slice(Math.max(a, p.start), Math.min(b, p.end))).join("");
  }

  // copied puts the selected text into the clipboard, if the copy event is about this view: drawn rows lack the rest of a
  // long text, and have line breaks and symbols that the text has not.
  copied(e) {
    const sel = document.getSelection();
    if (sel.isCollapsed ? document.activeElement !== this.box : ![sel.anchorNode, sel.focusNode].every((n) => this.space.contains(n))) return;
    this.taken(); // the mouse may have moved since the last selectionchange
    const [a, b] = this.range();
    if (a === b) return;
    e.clipboardData.setData("text/plain", copyable(this.text.slice(a, b)));
    e.preventDefault();
  }

  press(e) {
    if (e.ctrlKey || e.metaKey) {
      if (e.key === "a") {
        e.preventDefault();
        this.anchor = 0;
        this.cursor = this.text.length;
        document.getSelection()?.removeAllRanges();
        this.schedule(true);
      }
      return;
    }
    const to = this.target(e.key);
    if (to !== undefined) {
      e.preventDefault();
      e.stopPropagation();
      this.move(to, e.shiftKey);
    } else if (this.onselect && !e.altKey && (e.key === "Enter" || e.key.toLowerCase() === "w" && !document.querySelector("dialog[open]"))) {
      e.stopPropagation();
      e.preventDefault();
      this.follow();
    } else if (e.key === "Tab" || e.key === "Escape") {
      this.onhover?.(null);
    }
  }

  // follow asks how the selected text got here; without a selection, the word at the cursor, or else what
  // its line has of its source.
  follow() {
    if (this.rendered && !this.rendered.hidden) {
      const words = this.selectedWords();
      return words.trim().length < 2 ? toast(howToFollow) : this.onselect(words, this.rendered.getBoundingClientRect(), true);
    }
    if (this.anchor === this.cursor) this.word();
    if (this.selection().trim().length < 2) this.part();
    const text = this.selection();
    if (text.trim().length < 2) toast(this.pieces[this.pieceAt(this.cursor)].note ? "What is withheld cannot be followed" : howToFollow);
    else this.onselect(text, this.caretRect(), true);
  }

  // part selects what the line at the cursor has of the source of the text there.
  part() {
    const at = Math.min(this.cursor, this.text.length - 1), p = this.pieces[this.pieceAt(at)], [from, to] = this.lines[this.rowOf(at)];
    this.anchor = Math.max(from, p.start);
    this.cursor = Math.min(to, p.end);
    this.schedule(true);
  }

  target(key) {
    const row = this.rowOf(this.cursor);
    const page = Math.max(1, Math.floor(this.box.clientHeight / rowHeight) - 1);
    switch (key) {
      case "ArrowRight": return this.jump(1);
      case "ArrowLeft": return this.jump(-1);
      case "ArrowDown": return this.vertical(row, 1);
      case "ArrowUp": return this.vertical(row, -1);
      case "PageDown": return this.vertical(row, page);
      case "PageUp": return this.vertical(row, -page);
      case "Home": return this.lines[row][0];
      case "End": return this.lines[row][1];
    }
    return undefined;
  }

  rowOf(pos) {
    let lo = 0, hi = this.lines.length - 1;
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (this.lines[mid][0] <= pos) lo = mid; else hi = mid - 1;
    }
    return lo;
  }

  vertical(row, by) {
    const to = Math.max(0, Math.min(this.lines.length - 1, row + by)), [from, end] = this.lines[to];
    if (row + by > to) return this.text.length;
    return Math.min(end, from + this.cursor - this.lines[row][0]);
  }

  // jump returns the next beginning of a word, or of a piece.
  jump(by) {
    let i = this.cursor;
    const word = (k) => /[\p{L}\p{N}_]/u.test(this.text[k] ?? "");
    const starts = (k) => word(k) && !word(k - 1);
    do i += by; while (i > 0 && i < this.text.length && !starts(i));
    return Math.max(0, Math.min(this.text.length, i));
  }

  // word selects the word at the cursor.
  word() {
    const word = (k) => /[\p{L}\p{N}_.,@-]/u.test(this.text[k] ?? "");
    let a = this.cursor, b = this.cursor;
    while (a > 0 && word(a - 1)) a--;
    while (b < this.text.length && word(b)) b++;
    this.anchor = a;
    this.cursor = b;
    this.schedule(true);
  }

  move(to, extend) {
    this.cursor = to;
    if (!extend) this.anchor = to;
    document.getSelection()?.removeAllRanges();
    this.reveal(this.rowOf(to));
    this.schedule(true);
    this.onhover?.(this.pieces[this.pieceAt(Math.min(to, this.text.length - 1))], null, true);
    if (extend) requestAnimationFrame(() => this.onselect?.(this.selection(), this.caretRect()));
  }

  caretRect() {
    const row = this.rows.get(this.rowOf(this.cursor));
    return (row ?? this.box).getBoundingClientRect();
  }

  reveal(row, center) {
    const y = row * rowHeight, view = this.box.clientHeight;
    if (y < this.box.scrollTop + rowHeight || y > this.box.scrollTop + view - 2 * rowHeight) this.box.scrollTop = y - (center ? view / 3 : y < this.box.scrollTop + rowHeight ? rowHeight : view - 3 * rowHeight);
  }

  // show marks a range and scrolls to it.
  show(from, to) {
    if (!this.lines) {
      this.pending = [from, to];
      return;
    }
    this.pending = null;
    this.marked = [from, to];
    this.cursor = this.anchor = from;
    this.reveal(this.rowOf(from), true);
    this.schedule(true);
  }
}

// textBlock shows a text that a model or a person wrote, windowed if it is long.
export function textBlock(text, { label, head, tools, onselect, most } = {}) {
  const view = new TextView({ label: label ?? "Text", head, tools, pieces: [{ text }], onselect, most });
  if (!text) fill(view.el, note("empty"));
  return view;
}
