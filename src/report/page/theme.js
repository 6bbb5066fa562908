'use strict';
// Light or dark: the system's choice until the switch is used. Whoever draws by hand asks color() and is told of a
// change through onTheme().

const themeListeners = new Set();

function onTheme(listener) { themeListeners.add(listener); }

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}

function stored(value) {  // storage may be forbidden to a file
  try {
    if (value !== undefined) localStorage.setItem('fusediff-theme', value);
    return localStorage.getItem('fusediff-theme');
  } catch (refused) {
    return null;
  }
}

function startTheme(button) {
  const show = () => {
    button.textContent = isDark() ? 'light' : 'dark';
    button.setAttribute('aria-label', 'switch to ' + button.textContent + ' colours');
    for (const listener of themeListeners) listener();
  };
  const before = stored();
  if (before === 'light' || before === 'dark') document.documentElement.dataset.theme = before;
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
    stored(document.documentElement.dataset.theme);
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', show);
  show();
}
