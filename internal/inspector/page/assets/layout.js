// Where the nodes of a graph go: in layers from top to bottom, each below all that it reads. A line that passes a layer has
// a bend there, between nodes. Lines that go back, or whose bends would be too many, share a lane at the right.

import { linesOf, subFont, titleFont, widthOf } from "./lines.js";

const nodeGap = 28, lineGap = 14, layerGap = 56, mostBends = 2000, mostSplit = 200, mostWide = 272, mostLines = 4;

// titleLine is the height of a line of a title.
export const titleLine = 16;

// layout gives each node x, y, w, h and its layer, and each edge its ends a and b and its points. It returns the size of
// the whole, which is not wider than most if it can be: a layer whose nodes are wider than row is split into several,
// unless there are very many nodes. Equal graphs have equal pictures.
export function layout(nodes, edges, most = Infinity, row = most - 6 * lineGap) {
  const of = new Map(nodes.map((n) => [n.id, Object.assign(n, vertex(0, ...sizeOf(n)))])), rows = [];
  for (const e of edges) {
    Object.assign(e, { a: of.get(e.from), b: of.get(e.to) });
    e.a.out.push(e);
  }
  assignLayers(nodes);
  if (most < Infinity && nodes.length <= mostSplit) splitLayers(nodes, row);
  const put = (v) => { (rows[v.layer] ??= []).push(v); return v; }, span = (e) => e.b.layer - e.a.layer;
  nodes.forEach(put);
  let room = mostBends;
  for (const e of edges.filter((e) => !e.back).sort((x, y) => span(x) - span(y))) {
    if ((room -= span(e) - 1) < 0) break;
    e.bends = [];
    for (let v = e.a; v !== e.b;) {
      const next = v.layer + 1 === e.b.layer ? e.b : put(vertex(v.layer + 1, 0, 0));
      v.down.push(next);
      next.up.push(v);
      if (next !== e.b) e.bends.push(next);
      v = next;
    }
  }
  for (let i = nodes.length > 1000 ? 1 : 3; i > 0; i--) {
    for (const row of rows) arrange(row, most, true);
    for (const row of [...rows].reverse()) arrange(row, most, false, true);
  }
  for (const row of rows) arrange(row, most, true, true);
  return place(rows, edges);
}

// vertex returns a node, or the bend of a line if it has no size.
function vertex(layer, w, h) { return { layer, w, h, center: 0.5, up: [], down: [], out: [], next: -1, reads: false }; }

// assignLayers puts each node right below the lowest that it reads, and one that reads nothing right above its first
// reader. Edges that close a cycle go back, and do not count.
function assignLayers(nodes) {
  const order = [];
  for (const root of nodes) {
    for (const open = root.next < 0 ? [root] : []; open.length > 0;) {
      const n = open.at(-1), e = n.out[++n.next];
      if (!e) order.push(open.pop());
      else if (e.b.next < 0) open.push(e.b);
      else e.back = e.b.next < e.b.out.length; // it is open
    }
  }
  for (const n of order.reverse()) {
    for (const e of n.out) {
      if (e.back) continue;
      e.b.layer = Math.max(e.b.layer, n.layer + 1);
      e.b.reads = true;
    }
  }
  for (const n of nodes) if (!n.reads && n.out.length > 0) n.layer = n.out.reduce((l, e) => Math.min(l, e.b.layer - 1), Infinity);
}

// splitLayers splits each layer that is wider than most.
function splitLayers(nodes, most) {
  const layers = [];
  for (const n of nodes) (layers[n.layer] ??= []).push(n);
  let layer = -1;
  for (const row of layers) {
    let width = most;
    for (const n of row) {
      width += nodeGap + n.w;
      if (width > most) {
        layer++;
        width = n.w;
      }
      n.layer = layer;
    }
  }
}

// arrange orders a row by where its neighbours are on average, and moves it there, as near as the gaps allow: those that
// would overlap stay together, where all of them are nearest to their neighbours. A row that is not wider than most stays
// between 0 and most.
function arrange(row, most, up, down) {
  for (const v of row) {
    let sum = 0, n = 0;
    if (up) for (const w of v.up) sum += w.center, n++;
    if (down) for (const w of v.down) sum += w.center, n++;
    v.want = n ? sum / n : v.center;
  }
  row.sort((v, w) => v.want - w.want);
  const blocks = []; // each is its first vertex
  let last;
  for (const v of row) {
    v.offset = last ? last.offset + (last.w + v.w) / 2 + (last.w && v.w ? nodeGap : lineGap) : 0;
    last = v;
    v.weight = v.w ? 1 : 4; // rather a straight line than a node in the middle
    v.sum = (v.want - v.offset) * v.weight;
    v.size = 1;
    blocks.push(v);
    for (let a, b; (b = blocks.at(-1), a = blocks.at(-2)) && a.sum * b.weight > b.sum * a.weight; blocks.pop()) {
      a.size += b.size;
      a.sum += b.sum;
      a.weight += b.weight;
    }
  }
  let i = 0;
  for (const { size, sum, weight } of blocks) for (const end = i + size; i < end; i++) row[i].center = sum / weight + row[i].offset;
  if (most < Infinity) for (const v of row) v.center = Math.max(row[0].w / 2 + v.offset, Math.min(v.center, most - last.w / 2 - last.offset + v.offset));
}

// place turns centers into whole coordinates from 0 on, and gives the edges their points.
function place(rows, edges) {
  const left = rows.reduce((x, row) => Math.min(x, row[0].center - row[0].w / 2), Infinity);
  let width = 1, height = 0;
  for (const row of rows) {
    const high = row.reduce((h, v) => Math.max(h, v.h), 0);
    for (const v of row) {
      v.x = Math.round(v.center - v.w / 2 - left);
      v.y = height + (v.h && (high - v.h) / 2);
      v.h ||= high;
      width = Math.max(width, v.x + v.w);
    }
    height += high + layerGap;
  }
  const lane = width + lineGap;
  for (const e of edges) {
    const { a, b, bends } = e, y = a.y + a.h;
    e.points = [[a.x + a.w / 2, y], ...bends?.flatMap((v) => [[v.x, v.y], [v.x, v.y + v.h]]) ?? [[lane, y + layerGap / 2], [lane, b.y - layerGap / 2]], [b.x + b.w / 2, b.y]];
  }
  return { width: edges.some((e) => !e.bends) ? lane : width, height: Math.max(1, height - layerGap) };
}

// sizeOf returns how large a node is: title, agent with model or size of the fold, tools if it calls any, and numbers have
// lines.
function sizeOf(n) {
  const input = n.kind === "input", words = input ? 0 : n.members ? 176 : 8 * (n.agent ?? "").length + 112, indent = input ? 26 : 44;
  n.lines = linesOf(n.name || n.title, mostWide - indent, mostLines, titleFont);
  const widest = n.lines.reduce((w, line) => Math.max(w, widthOf(line, titleFont)), 0);
  const calls = n.calls ? Math.ceil(widthOf(n.calls, subFont)) + 40 : 0; // with room for larger counts
  return [Math.min(Math.max(Math.ceil(widest) + indent + 12, words, calls, 144), mostWide), (input ? 24 : 50) + (n.calls ? 15 : 0) + titleLine * n.lines.length];
}
