// How texts of the graph fit into their room: SVG does not break lines.

import { visible } from "./dom.js";

// titleFont and subFont are the fonts of nodes, as app.css has them.
export const titleFont = "560 12px";

export const subFont = "400 10.5px";

let pen;

// widthOf returns how wide a text is drawn.
export function widthOf(text, font) {
  pen ??= document.createElement("canvas").getContext("2d");
  const family = pen.family ??= getComputedStyle(document.body).fontFamily;
  pen.font = font + " " + family;
  return pen.measureText(text).width;
}

// clip returns the longest beginning of a text that fits with a mark after it, or the whole text.
export function clip(text, room, font, mark = "…") {
  if (widthOf(text, font) <= room) return text;
  const all = [...text];
  let fits = 1, over = all.length;
  while (over - fits > 1) {
    const middle = (fits + over) >> 1;
    if (widthOf(all.slice(0, middle).join("") + mark, font) <= room) fits = middle;
    else over = middle;
  }
  return all.slice(0, fits).join("") + mark;
}

// linesOf breaks a text into lines that fit, after spaces if it can. What does not fit into most lines ends with …
export function linesOf(text, room, most, font) {
  const lines = [];
  let rest = visible(text).trim();
  while (rest !== "" && lines.length < most - 1) {
    let line = clip(rest, room, font, "");
    if (rest[line.length] === " ") line += " ";
    else if (line !== rest) line = line.slice(0, line.lastIndexOf(" ") + 1) || line;
    lines.push(line);
    rest = rest.slice(line.length).trimStart();
  }
  if (rest !== "") lines.push(clip(rest, room, font));
  return lines.length > 0 ? lines : [""];
}
