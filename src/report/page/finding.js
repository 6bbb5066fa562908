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
    table(['', 'runs', 'differing', 'rate', 'pinned to one CPU', 'of those differing'], f.rates.map((rate, s) => [columns[s], rate.runs, rate.differing, percent(rate.differing, rate.runs), rate.pinned_runs, rate.pinned_differing])
        .filter((row) => row[1] > 0), [1, 2, 3, 4, 5])];
}

function causeTable(f) {
  if (f.causes.length === 0) return null;
  return [el('h3', {}, 'Cause'), f.conclusion ? el('p', {}, f.conclusion) : null,
    table(['run', 'calls', 'differ', 'rate', 'different results'], f.causes.map((c) => [c.what, whole(c.calls), whole(c.differing), percent(c.differing, c.calls),
      c.differing === 0 ? 'none' : c.digests === 1 ? 'always alike' : 'at least ' + c.digests]), [1, 2, 3])];
}

function differencesTable(f) {
  if (f.differences.length === 0) return null;
  const rows = f.differences.map((d) => [d.stage === null ? '' : d.stage, breakable(d.output), d.dtype, badge(d['class']), whole(d.differing) + ' of ' + whole(d.elements), d.max_ulp, d.median_ulp,
    d.error ? d.error.join(' / ') : 'no truth', d.bound === null ? 'relative' : d.bound, d.first, d.first_values[0], d.first_values[1]]);
  return [el('h3', {}, 'Outputs that differ'),
    table(['stage', 'output', 'dtype', 'class', 'differ', 'at most', 'median', 'ULP from the truth, ' + f.sides.join(' / '), 'bound (ULP)', 'first at', f.sides[0] + ' there', f.sides[1] + ' there'], rows, [0, 9])];
}

function findingBody(f) {
  const body = el('div', {});
  const add = (...parts) => body.append(...parts.flat(3).filter((part) => part !== null && part !== undefined));
  add(el('dl', {},
      f.standing !== 'new' || report.ledger ? fact('ledger', [el('span', {}, f.ledger_says || 'new: not in the ledger', ' ', issueLink(f.ledger))]) : [],
      fact('compared', f.compared), fact('run', f.run), fact('meaning', f.meaning), fact('blame', f.blame || 'no stage'), fact('evidence', f.evidence), fact('influence', f.influence),
      fact('how certain', f.certainty || 'not replayed'), fact('notes', f.notes)));
  add(el('h3', {}, 'What to run'), f.commands.map((c) => [el('p', {class: 'soft'}, c.label), command(c.label, c.command)]));
  if (f.unread) add(el('p', {class: 'note'}, f.unread + '.'));
  add(f.ties.map((tie) => tiePicture(tie, f.sides)));
  add(f.bytes.map(bytesPicture));
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
      el('summary', {}, el('b', {}, number + '. '), badge(f['class']), ' ', standingTag(f), f.headline));
  part.addEventListener('toggle', () => fillPart(part, f));
  return part;
}

function fillPart(part, f) {
  if (part.open && part.childElementCount === 1) part.append(findingBody(f));
}

function standingTag(f) {
  if (!report.ledger && f.standing === 'new') return '';
  return el('span', {}, el('span', {class: 'tag'}, f.standing), ' ');
}
