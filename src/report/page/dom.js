'use strict';
// Elements and words. Text of the report becomes text nodes, never markup.

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  return filled(made, attributes, children);
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  return filled(made, attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ''));
  return made;
}

// A name that may be broken behind its underscores.
function breakable(name) {
  return String(name).split(/(?<=_)/).flatMap((part, i) => i ? [el('wbr', {}), part] : [part]);
}

// 1 234 567, with thin spaces.
function whole(count) { return String(Math.round(count)).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f'); }
function counted(count, one, many) { return whole(count) + ' ' + (count === 1 ? one : many); }
function short(value) { return value === null ? 'not finite' : Number(value.toPrecision(6)).toString(); }

function duration(seconds) {
  if (seconds < 120) return (seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)) + ' s';
  if (seconds < 7200) return (seconds / 60).toFixed(1) + ' min';
  return (seconds / 3600).toFixed(1) + ' h';
}

// Steps between two values: 2^k for what is too long to read.
function steps(ulp) {
  if (ulp < 0) return 'NaN against a number';
  if (ulp < 1e7) return whole(ulp) + ' ULP';
  return 'about 2^' + Math.log2(ulp).toFixed(1) + ' ULP';
}

function percent(part, all) { return all === 0 ? '' : (100 * part / all).toFixed(part === all || part === 0 ? 0 : 1) + ' %'; }

const classGroups = {
  hang: 'severe', memory: 'severe', overrun: 'severe', overread: 'severe', crash: 'severe',
  unwritten: 'state', dirty: 'state', input_changed: 'state', nondeterminism: 'state', contamination: 'state',
  undeclared_limit: 'contract', accepted_illegal: 'contract', invariant: 'contract', gradient: 'contract',
  non_finite: 'numbers', flip: 'numbers', wrong_pick: 'numbers', damage: 'numbers',
};
const classOrder = Object.keys(classGroups).concat(['rounding', 'zero_sign', 'nan_bits']);

function badge(name) { return el('span', {class: 'badge ' + (classGroups[name] || 'rounding')}, name); }

function table(head, rows, numbers) {
  const side = (i) => (numbers || []).includes(i) ? 'number' : null;
  const cards = head.length > 5;  // too wide for a narrow window: there each row becomes a list of its own
  return el('div', {class: 'wide'}, el('table', {class: cards ? 'plain cards' : 'plain'},
      el('thead', {}, el('tr', {}, head.map((name, i) => el('th', {scope: 'col', class: side(i)}, name)))),
      el('tbody', {}, rows.map((row) => el('tr', {class: row.mark}, (row.cells || row).map((cell, i) => el('td', {class: side(i), 'data-label': cards ? head[i] || ' ' : null}, cards ? el('div', {}, cell) : cell)))))));
}

function command(label, text) {
  const button = el('button', {type: 'button', 'aria-label': 'copy: ' + label}, 'copy');
  button.addEventListener('click', () => copy(text, button));
  return el('div', {class: 'command'}, el('pre', {}, text), button);
}

async function copy(text, button) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch (refused) {  // the older way, which a file may use
    const area = el('textarea', {});
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand('copy');
    area.remove();
  }
  button.textContent = done ? 'copied' : 'refused';
  setTimeout(() => { button.textContent = 'copy'; }, 1500);
}

// Draws when the node comes near the window, or when the page is printed.
const waiting = new Map();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawNow(entry.target);
}, {rootMargin: '300px'});

function lazily(node, draw) {
  waiting.set(node, draw);
  watcher.observe(node);
  return node;
}

function drawNow(node) {
  const draw = waiting.get(node);
  waiting.delete(node);
  watcher.unobserve(node);
  if (draw) draw();
}

addEventListener('beforeprint', () => {
  for (const node of [...waiting.keys()]) if (node.isConnected && !node.closest('details:not([open])')) drawNow(node);
});
