'use strict';
// The part of the page about one finding, made when it is opened.

function fact(name, content) {
  if (content === null || content === undefined || content === '' || content.length === 0) return [];
  const body = Array.isArray(content) && content.length > 1 ? el('ul', {}, content.map((line) => el('li', {}, line))) : content;
  return [el('dt', {}, name), el('dd', {}, body)];
}

function issueLink(entry) {
  if (!entry || !entry.issue) return null;
  return /^https?:\/\//.test(entry.issue) ? el('a', {href: entry.issue, rel: 'noreferrer'}, entry.issue) : entry.issue;
}

function ratesTable(f) {
  const rows = f.rates.map((rate, s) => [f.sides[s], rate.runs, rate.differing, rate.pinned_runs, rate.pinned_differing, rate]).filter((row) => row[5].runs > 0);
  if (rows.length === 0) return null;
  const columns = f['class'] === 'contamination' ? ['the whole experiment', 'the call alone'] : f.sides;
  return [el('h3', {}, 'Reruns on fresh contexts'),
    table(['side', 'runs', 'differing', 'rate', 'pinned to one CPU', 'of those differing'], f.rates.map((rate, s) => [columns[s], rate.runs, rate.differing, percent(rate.differing, rate.runs), rate.pinned_runs, rate.pinned_differing])
        .filter((row) => row[1] > 0), [1, 2, 3, 4, 5])];
}

function causeTable(f) {
  if (f.causes.length === 0) return null;
  return [el('h3', {}, 'Cause'), f.conclusion ? el('p', {}, f.conclusion) : null,
    table(['run', 'calls', 'differ', 'rate', 'different results'], f.causes.map((c) => [c.what, whole(c.calls), whole(c.differing), percent(c.differing, c.calls),
      c.differing === 0 ? 'none' : c.digests === 1 ? 'always alike' : 'at least ' + c.digests]), [1, 2, 3])];
}

// Where the first and the worst element lie, and what each side has there.
function places(d) {
  const both = d.worst !== d.first && d.worst >= 0;
  const lines = (first, worst) => both ? el('div', {class: 'places'}, el('div', {}, first), el('div', {}, worst)) : first;
  return [lines(both ? 'first: ' + d.first : d.first, 'worst: ' + d.worst), ...[0, 1].map((s) => lines(d.first_values[s], d.worst_values[s]))];
}

function differencesTable(f) {
  if (f.differences.length === 0) return null;
  const judged = f.differences.some((d) => d.error || d.bound !== null);  // against a truth
  const words = (d, text) => /^(i|u|bool)/.test(d.dtype) ? text.replace(/ ULP$/, '') : text;
  const rows = f.differences.map((d) => [d.stage === null ? '\u2013' : d.stage, breakable(d.output), d.dtype, badge(d['class']), whole(d.differing) + ' of ' + whole(d.elements), words(d, d.max_ulp), words(d, d.median_ulp),
    ...(judged ? [d.error ? d.error.join(' / ') : 'no truth', d.bound === null ? (d.error ? 'relative' : '\u2013') : d.bound] : []), ...places(d)]);
  return [el('h3', {}, 'Outputs that differ'),
    table(['stage', 'output', 'dtype', 'class', 'differ', 'at most', 'median', ...(judged ? ['ULP from the truth, ' + f.sides.join(' / '), 'bound (ULP)'] : []), 'element', ...f.sides], rows, [0])];
}

// Two runs may leave the same bytes: one picture is enough.
function alike(pictures) {
  const seen = new Map();
  for (const picture of pictures) {
    const key = JSON.stringify(picture);
    seen.set(key, {...picture, times: (seen.get(key) || {times: 0}).times + 1});
  }
  return [...seen.values()];
}

function findingBody(f) {
  const body = el('div', {});
  const add = (...parts) => body.append(...parts.flat(3).filter((part) => part !== null && part !== undefined));
  add(el('dl', {},
      f.standing !== 'new' || report.ledger ? fact('ledger', [el('span', {}, f.ledger_says || 'new: not in the ledger', ' ', issueLink(f.ledger))]) : [],
      fact('compared', f.compared), fact('run', f.run), fact('meaning', f.meaning), fact('blame', f.blame || 'no stage'), fact('evidence', f.evidence), fact('influence', f.influence),
      fact('how certain', [f.certainty, f.replay ? '' : 'not replayed'].filter((v) => v).join('; ')), fact('notes', f.notes)));
  add(el('h3', {}, 'What to run'), f.commands.map((c) => [el('p', {class: 'soft'}, c.label), command(c.label, c.command)]));
  if (f.unread) add(el('p', {class: 'note'}, f.unread + '.'));
  add(f.ties.map((tie) => tiePicture(tie, f.sides)));
  add(alike(f.bytes).map(bytesPicture));
  add(el('div', {class: 'columns'}, f.sweeps.slice(0, 6).map((sweep) => sweepChart(sweep, f.sides))));
  if (f.sweeps.length > 6) add(el('p', {class: 'soft'}, (f.sweeps.length - 6) + ' more derivatives, in finding.json'));
  add(causeTable(f), ratesTable(f));
  add(el('div', {class: 'columns'}, f.ulp.map((plot) => ulpChart(plot, f.sides))));
  add(differencesTable(f));
  add(el('h3', {}, 'The smallest case'), el('pre', {class: 'case', tabindex: 0}, f['case']));
  if (f.files.length) {
    add(el('h3', {}, 'Files of the bundle'), el('p', {class: 'soft mono'}, f.bundle),
        el('ul', {class: 'files'}, f.files.map((file) => el('li', {}, el('a', {href: file.href}, file.name)))));
  }
  add(el('details', {}, el('summary', {}, 'Environment and signature'), el('p', {class: 'mono'}, f.signature), el('pre', {}, f.environment)));
  return body;
}

function findingPart(f, number) {
  const part = el('details', {class: 'finding', id: 'f' + number},
      el('summary', {}, el('b', {}, number + '. '), standingTag(f), badge(f['class']), ...afterClass(f)));
  part.addEventListener('toggle', () => fillPart(part, f));
  return part;
}

// The badge says the class already.
function afterClass(f) { return f.headline.startsWith(f['class'] + ' ') ? [f.headline.slice(f['class'].length)] : [' ', f.headline]; }

function fillPart(part, f) {
  if (part.open && part.childElementCount === 1) part.append(findingBody(f));
}

function standingTag(f) {
  if (!report.ledger && f.standing === 'new') return '';
  return el('span', {}, el('span', {class: 'tag'}, f.standing), ' ');
}
