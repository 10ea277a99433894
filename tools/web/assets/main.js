// SPDX-License-Identifier: Apache-2.0
// Starts the page: session, language, theme, frame and routes.
import { begin, connection, post } from './api.js';
import { fill, h, setText } from './dom.js';
import { language, languages, preferredLanguage, t, useLanguage } from './i18n.js';
import { icon } from './icons.js';
import { watchEnds } from './jobs.js';
import { volumesPage } from './page_volumes.js';
import { isActive, jobs } from './store.js';
import { button, errorNote, makeLiveRegions, note } from './ui.js';

const app = document.getElementById('app');
const pages = [['volumes', 'volume'], ['files', 'file'], ['keys', 'key'], ['compare', 'compare'], ['live', 'live'], ['activity', 'activity']];
let current = { node: null };
let main = null;
let banner = null;

// Pages other than the first are loaded when they are first shown.
async function pageFor(parts) {
  switch (parts[0]) {
    case 'files': return (await import('./page_files.js')).filesPage(parts.slice(1));
    case 'keys': return (await import('./page_keys.js')).keysPage(parts.slice(1));
    case 'compare': return (await import('./page_compare.js')).comparePage();
    case 'live': return (await import('./page_live.js')).livePage(parts[1]);
    case 'activity': return (await import('./page_activity.js')).activityPage();
    case 'new': return (await import('./page_wizard.js')).wizardPage();
    case 'volumes':
      if (parts[1]) return (await import('./page_volume.js')).volumePage(parts[1], parts[2]);
      break;
    default:
  }
  return volumesPage();
}

function addressParts() {
  try {
    return location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return [];
  }
}

let routeCount = 0;

async function route(focus = true) {
  const parts = addressParts();
  const address = location.hash;
  const own = ++routeCount;
  current.stop?.();
  current = {};
  document.querySelectorAll('dialog[open]').forEach((open) => open.close());
  const made = await pageFor(parts);
  if (own !== routeCount) return made.stop?.();
  current = made;
  main.replaceChildren(current.node);
  main.dataset.address = address;
  const chosen = parts[0] === 'new' ? 'volumes' : parts[0] ?? 'volumes';
  for (const link of document.querySelectorAll('.nav a')) {
    if (link.dataset.page === chosen) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const heading = main.querySelector('h1');
  document.title = `${heading?.textContent ?? ''} – Nacre`;
  if (!focus) return undefined;
  window.scrollTo(0, 0);
  heading?.focus({ preventScroll: true });
  return undefined;
}

function useTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function preferences() {
  const theme = localStorage.getItem('nacre.theme') ?? 'auto';
  const themes = h('select.select.small', { 'aria-label': t('ui.theme'), onchange: () => {
    localStorage.setItem('nacre.theme', themes.value);
    useTheme(themes.value);
  } }, ['auto', 'light', 'dark'].map((name) => h('option', { value: name, selected: name === theme }, t(`theme.${name}`))));
  const tongues = h('select.select.small', { 'aria-label': t('ui.language'), onchange: async () => {
    localStorage.setItem('nacre.language', tongues.value);
    await useLanguage(tongues.value);
    buildFrame();
    document.querySelector('.preferences select:last-child').focus();
  } }, Object.entries(languages).map(([tag, name]) => h('option', { value: tag, selected: tag === language, lang: tag }, name)));
  return h('div.preferences', themes, tongues);
}

function buildFrame() {
  const count = h('span.badge-count', { hidden: true });
  const links = pages.map(([name, sign]) => h('a', { href: `#/${name}`, 'data-page': name }, icon(sign), h('span', t(`nav.${name}`)),
    name === 'activity' ? count : null));
  main = h('main.main', { id: 'main', tabindex: '-1' });
  banner = h('div.page', { hidden: true });
  const skip = button(t('ui.skip'), () => main.querySelector('h1')?.focus(), { kind: 'skip' });
  const side = h('div.sidebar', h('div.brand', h('img', { src: 'icon.svg', alt: '', width: 32, height: 32 }), h('span', 'Nacre')),
    h('nav.nav', { 'aria-label': t('nav.label') }, links),
    h('div.sidebar-end', preferences()));
  fill(app, skip, side, h('div', banner, main));
  app.removeAttribute('aria-busy');
  document.querySelector('.toasts')?.remove();
  document.querySelector('[aria-live="polite"].visually-hidden')?.remove();
  document.body.append(...makeLiveRegions());
  buildFrame.stop?.();
  buildFrame.stop = jobs.subscribe((list) => {
    const running = (list ?? []).filter(isActive).length;
    count.hidden = running === 0;
    setText(count, running);
    count.setAttribute('aria-label', t('nav.running', { n: running }));
  });
  route(false).catch(showFailure);
}

function showLost() {
  current.stop?.();
  document.querySelectorAll('dialog[open]').forEach((open) => open.close());
  app.removeAttribute('aria-busy');
  document.title = `${t('lost.title')} – Nacre`;
  const heading = h('h1', { tabindex: '-1' }, t('lost.title'));
  fill(app, h('div.sidebar', h('div.brand', h('img', { src: 'icon.svg', alt: '', width: 32, height: 32 }), h('span', 'Nacre'))),
    h('main.main', h('div.page', h('div.card.stack', heading, h('p', t('lost.text')), h('p', t('lost.next')),
      h('div.command', h('pre', 'nacre web')), h('p.muted.small', t('lost.why'))))));
  heading.focus();
}

connection.addEventListener('lost', () => {
  if (main) showLost();
});
connection.addEventListener('away', () => {
  if (!banner) return;
  banner.hidden = false;
  fill(banner, errorNote({ code: 'away', what: '' }));
});
connection.addEventListener('back', () => {
  if (banner) banner.hidden = true;
});

function showFailure(failure) {
  fill(main ?? app, note('bad', String(failure)));
}

async function run() {
  useTheme(localStorage.getItem('nacre.theme') ?? 'auto');
  const [hasSession] = await Promise.all([begin(), useLanguage(preferredLanguage())]);
  if (!hasSession) {
    document.body.append(...makeLiveRegions());
    showLost();
    return;
  }
  if (!location.hash) history.replaceState(null, '', '#/volumes');
  buildFrame();
  watchEnds();
  window.addEventListener('hashchange', () => route().catch(showFailure));
  setInterval(() => post('/api/alive').catch(() => {}), 60000);
}

run().catch(showFailure);
