'use strict';
// The table of all findings: filters, and an order by any column. The parts further down follow the filters.

const listColumns = [
  ['#', (f, i) => i + 1, 'number'],
  ['state', (f) => f.standing, ''],
  ['class', (f) => f['class'], ''],
  ['operator', (f) => f.op, 'name'],
  ['tensor', (f) => f.output, 'name'],
  ['dtype', (f) => f.dtype, 'name'],
  ['stage', (f) => f.stage === null ? -1 : f.stage, 'number'],
  ['experiment', (f) => f.experiment, 'name'],
  ['seen', (f) => f.seen, 'number'],
  ['replayed', (f) => f.replay && f.replay.runs ? f.replay.same / f.replay.runs : -1, 'number'],
  ['what', (f) => f.headline, 'what'],
];

function listCell(f, number, name, value) {
  if (name === '#') return el('a', {href: '#f' + number}, number);
  if (name === 'class') return badge(value);
  if (name === 'stage') return value < 0 ? '\u2013' : value;
  if (name === 'seen') return value === 0 ? '\u2013' : whole(value);
  if (name === 'replayed') return f.replay ? f.replay.same + ' of ' + f.replay.runs : 'no';
  if (name === 'what') {  // the columns before it say class, operator and output
    const cut = value.indexOf(': ');
    return el('a', {href: '#f' + number}, cut < 0 ? value : value.slice(cut + 2));
  }
  return breakable(value);
}

function choice(label, values, onChange) {
  const select = el('select', {onchange: onChange}, el('option', {value: ''}, 'all'), values.map((v) => el('option', {value: v}, v)));
  return [el('label', {}, label, select), select];
}

function findingsTable(all, details) {
  const rows = all.map((f, i) => {
    const cells = listColumns.map(([name, of, cls]) => el('td', {class: cls, 'data-label': name}, listCell(f, i + 1, name, of(f, i))));
    return {f, i, node: el('tr', {}, cells), keys: listColumns.map(([, of]) => of(f, i)),
            text: [f.signature, f.headline, f.bundle, ...f.evidence, ...f.notes].join('\n').toLowerCase()};
  });
  const count = el('output', {'aria-live': 'polite'});
  const body = el('tbody', {}, rows.map((row) => row.node));
  const distinct = (of) => [...new Set(all.map(of))].sort();
  const words = el('input', {type: 'search', placeholder: 'any words of it', oninput: () => apply()});
  const [classLabel, classes] = choice('class', distinct((f) => f['class']).sort((a, b) => classOrder.indexOf(a) - classOrder.indexOf(b)), () => apply());
  const [opLabel, ops] = choice('operator', distinct((f) => f.op), () => apply());
  const [experimentLabel, experiments] = choice('experiment', distinct((f) => f.experiment), () => apply());
  const [stateLabel, states] = choice('state', distinct((f) => f.standing), () => apply());
  words.id = 'filter-text'; classes.id = 'filter-class'; ops.id = 'filter-op'; experiments.id = 'filter-experiment'; states.id = 'filter-state';

  function apply() {
    const wanted = words.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const row of rows) {
      const f = row.f;
      const fits = (!classes.value || f['class'] === classes.value) && (!ops.value || f.op === ops.value) && (!experiments.value || f.experiment === experiments.value) &&
          (!states.value || f.standing === states.value) && wanted.every((word) => row.text.includes(word));
      row.node.hidden = details[row.i].hidden = !fits;
      shown += fits ? 1 : 0;
    }
    count.textContent = shown === rows.length ? counted(shown, 'finding', 'findings') : whole(shown) + ' of ' + counted(rows.length, 'finding', 'findings');
  }

  const heads = listColumns.map(([name, , cls], column) => {
    const head = el('th', {scope: 'col', class: cls === 'number' ? 'number' : null});
    head.append(el('button', {type: 'button', onclick: () => order(head, column)}, name));
    return head;
  });

  function order(head, column) {
    const down = head.getAttribute('aria-sort') === 'ascending';
    for (const other of heads) other.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const rank = (key) => listColumns[column][0] === 'class' ? classOrder.indexOf(key) : key;
    const sorted = [...rows].sort((a, b) => {
      const x = rank(a.keys[column]), y = rank(b.keys[column]);
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1) || a.i - b.i;
    });
    body.append(...sorted.map((row) => row.node));
  }

  apply();
  return el('div', {},
      el('form', {class: 'filters', onsubmit: (event) => event.preventDefault(), onreset: () => setTimeout(apply)}, el('label', {}, 'text', words), classLabel, opLabel, experimentLabel, stateLabel,
          el('button', {type: 'reset'}, 'clear'), count),
      el('div', {class: 'wide'}, el('table', {id: 'list'}, el('thead', {}, el('tr', {}, heads)), body)));
}

const mostOpenedAtOnce = 100;

function openAll(details) {
  const button = el('button', {type: 'button', class: 'open-all'}, 'open all that the filters show');
  button.addEventListener('click', () => {
    const shown = details.filter((part) => !part.hidden);
    for (const part of shown.slice(0, mostOpenedAtOnce)) part.open = true;
    button.textContent = shown.length > mostOpenedAtOnce ? 'opened the first ' + mostOpenedAtOnce : 'opened';
  });
  return el('p', {class: 'open-all'}, button, ' ', el('span', {class: 'soft'}, 'Plots are drawn as they come into view. What is open is what a printer gets.'));
}
