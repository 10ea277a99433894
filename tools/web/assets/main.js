// SPDX-License-Identifier: Apache-2.0
// Starts the page: session, language, theme, frame and routes. All scripts and pictures are loaded at
// the start: what is fetched later might come from another server (proof.js).
import { begin, connection, linkForAnotherTab, post } from './api.js';
import { fill, h, setText } from './dom.js';
import { currentLanguage, languages, preferredLanguage, t, useLanguage } from './i18n.js';
import { icon } from './icons.js';
import { watchEnds } from './jobs.js';
import { activityPage } from './page_activity.js';
import { comparePage } from './page_compare.js';
import { filesPage } from './page_files.js';
import { keysPage } from './page_keys.js';
import { livePage } from './page_live.js';
import { volumePage } from './page_volume.js';
import { volumesPage } from './page_volumes.js';
import { wizardPage } from './page_wizard.js';
import { isActive, jobs } from './store.js';
import { button, errorNote, makeLiveRegions, note, toast, unknownPage } from './ui.js';

const app = document.getElementById('app');
const pages = [['volumes', 'volume'], ['files', 'file'], ['keys', 'key'], ['compare', 'compare'], ['live', 'live'], ['activity', 'activity']];
let current = { node: null };
let main = null;
let banner = null;
let isLost = false;
let lostReason = 'session';
const brand = document.querySelector('.brand');

function pageFor(parts) {
  switch (parts[0]) {
    case 'files': return filesPage(parts.slice(1));
    case 'keys': return keysPage(parts.slice(1));
    case 'compare': return comparePage();
    case 'live': return livePage(parts[1]);
    case 'activity': return activityPage();
    case 'new': return wizardPage();
    case 'volumes': return parts[1] ? volumePage(parts[1], parts[2]) : volumesPage();
    case undefined: return volumesPage();
    default: return unknownPage(parts[0]);
  }
}

function addressParts() {
  try {
    return location.hash.replace(/^#\/?/, '').split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return [];
  }
}

function route(focus = true) {
  const parts = addressParts();
  const address = location.hash;
  current.stop?.();
  current = {};
  document.querySelectorAll('dialog[open]').forEach((open) => open.close());
  current = pageFor(parts);
  main.replaceChildren(current.node);
  main.dataset.address = address;
  const chosen = parts[0] === 'new' ? 'volumes' : parts[0] ?? 'volumes';
  for (const link of document.querySelectorAll('.nav a')) {
    if (link.dataset.page === chosen) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  const heading = main.querySelector('h1');
  document.title = `${heading?.textContent ?? ''} – Nacre`;
  if (!focus) return;
  window.scrollTo(0, 0);
  heading?.focus({ preventScroll: true });
}

function tryRoute(focus) {
  try {
    route(focus);
  } catch (failure) {
    showFailure(failure);
  }
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
  const tongues = h('select.select.small', { 'aria-label': t('ui.language'), onchange: () => {
    localStorage.setItem('nacre.language', tongues.value);
    useLanguage(tongues.value);
    buildFrame();
    document.querySelector('.preferences select:last-child').focus();
  } }, Object.entries(languages).map(([tag, name]) => h('option', { value: tag, selected: tag === currentLanguage(), lang: tag }, name)));
  return h('div.preferences', themes, tongues);
}

// The address of the first page opens one page alone. This one makes another address.
async function anotherTab() {
  try {
    window.open(await linkForAnotherTab(), '_blank', 'noopener');
  } catch (error) {
    toast(error.what, 'bad');
  }
}

function buildFrame() {
  const count = h('span.badge-count', { hidden: true });
  const links = pages.map(([name, sign]) => h('a', { href: `#/${name}`, 'data-page': name }, icon(sign), h('span', t(`nav.${name}`)),
    name === 'activity' ? count : null));
  main = h('main.main', { id: 'main', tabindex: '-1' });
  banner = h('div.page', { hidden: true });
  const skip = button(t('ui.skip'), () => main.querySelector('h1')?.focus(), { kind: 'skip' });
  const side = h('header.sidebar', brand,
    h('nav.nav', { 'aria-label': t('nav.label') }, links),
    h('div.sidebar-end', button(t('ui.another_tab'), anotherTab, { kind: 'quiet.small.another', name: 'external', title: t('ui.another_tab.hint'), 'aria-label': t('ui.another_tab') }), preferences()));
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
  tryRoute(false);
}

// why: 'server' if what answers is another server, else 'session'.
function showLost(why) {
  isLost = true;
  current.stop?.();
  current = {};
  buildFrame.stop?.();
  document.querySelectorAll('dialog[open]').forEach((open) => open.close());
  app.removeAttribute('aria-busy');
  const text = (part) => t(why === 'server' ? `lost.server.${part}` : `lost.${part}`);
  document.title = `${text('title')} – Nacre`;
  const heading = h('h1', { tabindex: '-1' }, text('title'));
  fill(app, h('header.sidebar', brand),
    h('main.main', h('div.page', h('div.card.stack', heading, h('p', text('text')), h('p', text('next')),
      h('div.command', h('pre', 'nacre web')), h('p.muted.small', t('lost.why'))))));
  heading.focus();
}

connection.addEventListener('lost', (event) => {
  lostReason = event.detail;
  if (main) showLost(lostReason);
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
  useLanguage(preferredLanguage());
  if (!await begin()) {
    document.body.append(...makeLiveRegions());
    showLost(lostReason);
    return;
  }
  if (!location.hash) history.replaceState(null, '', '#/volumes');
  buildFrame();
  watchEnds();
  window.addEventListener('hashchange', () => {
    if (!isLost) tryRoute();
  });
  setInterval(() => {
    if (!isLost) post('/api/alive').catch(() => {});
  }, 60000);
}

run().catch(showFailure);
