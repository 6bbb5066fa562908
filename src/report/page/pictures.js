'use strict';
// Pictures that no chart library draws: ties of two sides, and the bytes that kept their fill.

// Steps on a line through zero: one unit for each doubling, to either side.
function stepPlace(ulp) { return Math.sign(ulp) * Math.log2(Math.abs(ulp) + 1); }

function stepTicks(low, high) {
  const ticks = [0];
  for (let power = 0; power <= 64; power++) {
    const ulp = 2 ** power;
    if (ulp <= high) ticks.push(ulp);
    if (-ulp >= low) ticks.push(-ulp);
  }
  return ticks.sort((a, b) => a - b);
}

function stepLabel(ulp) {
  const size = Math.abs(ulp);
  const sign = ulp < 0 ? '\u2212' : ulp > 0 ? '+' : '';
  return sign + (size < 16384 ? size : '2^' + Math.round(Math.log2(size)));
}

// A picture that is drawn again when its room changes, so that its words keep their size.
function fitted(most, make) {
  const box = el('div', {class: 'fitted'});
  let drawnAt = 0;
  new ResizeObserver(() => {
    const width = Math.round(Math.min(most, box.clientWidth));
    if (width < 100 || width === drawnAt) return;
    drawnAt = width;
    const picture = make(width);
    picture.setAttribute('width', width);
    box.replaceChildren(picture);
  }).observe(box);
  return box;
}

// Where a candidate lies on either side, joined by a line: a line that crosses another is another order.
function tieSvg(tie, sides, width) {
  const left = 20, right = width - 20;
  const known = tie.candidates.filter((c) => c.ulp[0] !== null && c.ulp[1] !== null);
  const all = known.flatMap((c) => c.ulp);
  const low = Math.min(0, ...all), high = Math.max(0, ...all);
  const from = stepPlace(low) - 0.8, to = stepPlace(high) + 0.8;
  const x = (ulp) => left + (stepPlace(ulp) - from) / (to - from) * (right - left);
  const mark = (c) => c.index === tie.picked[0] ? 'first' : c.index === tie.picked[1] ? 'second' : '';
  // Dots that would lie on one another are stacked away from the middle.
  const stacks = [{}, {}];
  const place = new Map();
  for (const c of known) {
    place.set(c, [0, 1].map((s) => {
      const column = Math.round(x(c.ulp[s]) / 12);
      const level = stacks[s][column] = (stacks[s][column] ?? -1) + 1;
      return {x: x(c.ulp[s]), level};
    }));
  }
  const deep = [0, 1].map((s) => Math.max(0, ...Object.values(stacks[s])));
  const top = 46 + deep[0] * 15, bottom = top + 110, height = bottom + deep[1] * 15 + 76;
  const y = (s, level) => s === 0 ? top - level * 15 : bottom + level * 15;
  const picture = svg('svg', {viewBox: '0 0 ' + width + ' ' + height, role: 'img',
    'aria-label': 'ranks around the boundary in row ' + tie.row + ', ' + sides[0] + ' above, ' + sides[1] + ' below; the table has the numbers'});
  const base = height - 34;
  let lastLabel = -1e9;
  for (const ulp of stepTicks(low, high)) {
    const at = x(ulp);
    if (ulp !== 0 && (at - lastLabel < 44 || Math.abs(at - x(0)) < 30)) continue;
    if (ulp !== 0 || at - lastLabel >= 30) {
      picture.append(svg('line', {class: 'gridline', x1: at, x2: at, y1: 26, y2: base}));
      picture.append(svg('text', {class: 'soft', x: at, y: base + 15, 'text-anchor': 'middle'}, stepLabel(ulp)));
    }
    lastLabel = at;
  }
  picture.append(svg('text', {class: 'soft', x: width / 2, y: height - 4, 'text-anchor': 'middle'},
      width < 500 ? 'ULP from the pick of ' + sides[1] + ' there' : 'ULP from the rank that ' + sides[1] + ' gives its own pick (doubling to either side)'));
  for (const s of [0, 1]) {
    const at = s === 0 ? top : bottom;
    picture.append(svg('line', {class: 'axis', x1: left, x2: right, y1: at, y2: at}));
    picture.append(svg('text', {x: left, y: s === 0 ? 16 : base - 6}, sides[s]));
  }
  const ordered = [...known].sort((a, b) => (mark(a) ? 1 : 0) - (mark(b) ? 1 : 0));  // the two that matter on top
  for (const c of ordered) {
    const [a, b] = place.get(c);
    picture.append(svg('line', {class: 'link ' + mark(c), x1: a.x, y1: y(0, a.level), x2: b.x, y2: y(1, b.level)}));
  }
  for (const c of ordered) {
    place.get(c).forEach((p, s) => {
      const picked = c.slot[s] !== null && c.slot[s] >= 0;
      const dot = svg('circle', {class: 'dot ' + mark(c) + (picked ? ' picked' : ''), cx: p.x, cy: y(s, p.level), r: mark(c) ? 7 : 5});
      dot.append(svg('title', {}, sides[s] + ': candidate ' + c.index + ', ' + c.value[s] + slotWords(c.slot[s])));
      picture.append(dot);
      if (!mark(c)) return;
      // Of two that are close, the left one has its number on the left.
      const other = ordered.find((one) => mark(one) && one !== c);
      const beside = other ? place.get(other)[s].x - p.x : 0;
      const toLeft = beside > 0 && beside < 40;
      picture.append(svg('text', {class: mark(c), x: p.x + (toLeft ? -11 : 11), y: y(s, p.level) + (s === 0 ? -6 : 16), 'text-anchor': toLeft ? 'end' : 'start'}, c.index));
    });
  }
  return picture;
}

function slotWords(slot) { return slot === null ? '' : slot < 0 ? ', not picked' : ', slot ' + slot; }

function tiePicture(tie, sides) {
  const head = tie.pick + ', row ' + tie.row + ', slot ' + tie.slot + ': ' + sides[0] + ' picks ' + tie.picked[0] + ', ' + sides[1] + ' picks ' + tie.picked[1];
  const parts = [el('h3', {}, head)];
  if (tie.candidates.length === 0) {
    parts.push(el('p', {}, tie.known ? '' : 'The ranks of both sides are not to be had: add the ranked numbers (' + tie.by + ') as an output.'));
    return el('figure', {}, parts);
  }
  const nans = tie.candidates.filter((c) => c.ulp[0] === null || c.ulp[1] === null).length;
  const drawable = nans < tie.candidates.length;
  const say = [];
  if (drawable) {
    parts.push(fitted(760, (width) => tieSvg(tie, sides, width)));
    say.push('Filled: picked.');
    if (nans) say.push(counted(nans, 'candidate ranks', 'candidates rank') + ' NaN on a side, and stand in the table alone.');
  } else {
    say.push('No picture: every rank is NaN on a side, or is compared with NaN, so there is no distance to draw.');
  }
  say.push('Between the two ranks: ' + tie.gap[0] + ' (' + sides[0] + '), ' + tie.gap[1] + ' (' + sides[1] + ').');
  if (tie.order) say.push('The ' + tie.order + ' ' + tie.by + ' comes first, as the picks show.');
  if (tie.hidden > 0) say.push('Shown are the nearest; ' + counted(tie.hidden, 'candidate is', 'candidates are') + ' farther away.');
  if (tie.rows > 1) say.push(whole(tie.rows) + ' rows pick differently; this is the first.');
  say.push('From ' + tie.from + '.');
  parts.push(el('figcaption', {}, say.join(' ')));
  const slotCell = (slot) => slot === null ? '' : slot < 0 ? '' : 'slot ' + slot;
  const rows = tie.candidates.map((c) => ({
    mark: c.index === tie.picked[0] ? 'first' : c.index === tie.picked[1] ? 'second' : null,
    cells: [c.index, ...[0, 1].flatMap((s) => [c.value[s] + ' (' + c.bits[s] + ')', c.ulp[s] === null ? 'NaN' : (c.ulp[s] < 0 ? '\u2212' : c.ulp[s] > 0 ? '+' : '') + whole(Math.abs(c.ulp[s])), slotCell(c.slot[s])])],
  }));
  parts.push(table(['candidate', ...sides.flatMap((side) => [tie.by + ', ' + side, 'ULP', 'picked'])], rows, [0, 2, 5]));
  if (tie.stages.length) {
    parts.push(el('p', {}, 'What fed the rank, at the two picks:'));
    parts.push(table(['output', 'side', 'at ' + tie.picked[0], 'at ' + tie.picked[1]],
        tie.stages.flatMap((stage) => [0, 1].map((s) => [stage.output + ' (' + stage.dtype + ')', sides[s], stage.values[s][0], stage.values[s][1]])), [2, 3]));
  }
  if (tie.sums.length) {
    parts.push(table(['sum over the row', ...sides], tie.sums.map((sum) => [sum.output, sum.sum[0], sum.sum[1]]), [1, 2]));
  }
  return el('figure', {}, parts);
}

// The bytes of one output from the first to the last, to scale.
function bytesPicture(bytes) {
  const width = 1000, height = 40, least = 3;
  const picture = svg('svg', {class: 'bytes', viewBox: '0 0 ' + width + ' ' + height, preserveAspectRatio: 'none', role: 'img', 'aria-label': 'which bytes of ' + bytes.output + ' kept their fill'},
      svg('rect', {class: 'written', x: 0, y: 0, width, height}));
  let listed = 0, widened = 0;
  for (const [first, last] of bytes.ranges) {
    const count = last - first + 1;
    listed += count;
    const wide = count / bytes.total * width;
    widened += wide < least ? 1 : 0;
    const at = Math.min(first / bytes.total * width, width - least);
    picture.append(svg('rect', {class: 'kept', x: at, y: 0, width: Math.max(least, wide), height}, svg('title', {}, 'bytes ' + first + ' to ' + last)));
  }
  const what = bytes.follows ? 'follow the ' + bytes.follows + ' fill' : 'keep the fill: unwritten';
  const say = [el('span', {class: 'swatch kept'}), ' ' + whole(bytes.bytes) + ' of ' + counted(bytes.total, 'byte', 'bytes') + ' (' + percent(bytes.bytes, bytes.total) + ') ' + what + '. ',
    ...(bytes.bytes < bytes.total ? [el('span', {class: 'swatch written'}), bytes.follows ? ' other bytes. ' : ' written. '] : []), 'To scale.'];
  if (widened) say.push(' ' + counted(widened, 'range is', 'ranges are') + ' drawn wider than to scale, to be seen at all.');
  if (listed < bytes.bytes) say.push(' ' + whole(bytes.bytes - listed) + ' bytes are counted but not placed: a finding lists the first ranges only.');
  const ranges = bytes.ranges.slice(0, 12).map(([first, last]) => first + '..' + last).join(', ') +
      (bytes.ranges.length > 12 ? ', and ' + (bytes.ranges.length - 12) + ' more ranges' : '');
  return el('figure', {}, el('h3', {}, 'bytes of ' + bytes.output + (bytes.times > 1 ? ', alike in ' + bytes.times + ' runs' : '')), picture,
      el('div', {class: 'ends soft'}, el('span', {}, 'byte 0'), el('span', {}, 'byte ' + whole(Math.max(0, bytes.total - 1)))), el('figcaption', {}, say, el('br', {}), 'Bytes ' + ranges + '.'));
}
