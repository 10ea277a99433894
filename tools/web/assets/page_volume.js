// SPDX-License-Identifier: Apache-2.0
// One volume: its state, who can open it, and its upkeep.
import { get } from './api.js';
import { fill, h, setPart, setText } from './dom.js';
import { bytes, fingerprint, sentence } from './format.js';
import { t } from './i18n.js';
import { icon } from './icons.js';
import { jobList } from './jobs.js';
import { loginCard } from './login_mount.js';
import { addressOf } from './page_volumes.js';
import { nameOf, shown } from './paths.js';
import { facts } from './results.js';
import { isActive, volumes } from './store.js';
import { button, commandBox, errorNote, skeleton, tabs, unknownPage } from './ui.js';
import { accessTab } from './volume_access.js';
import { careTab } from './volume_care.js';
import { isMounted, mainButton, nameOfVolume, openFolder, statePill } from './volume_state.js';

// The jobs that each section lists.
const sections = {
  overview: ['make', 'mount', 'unmount', 'detach', 'at_login'],
  access: ['key_add', 'key_remove', 'key_passphrase'],
  care: ['rotate', 'scrub', 'check', 'repair_plan', 'repair', 'backup'],
};

export function volumePage(path, chosenTab = 'overview') {
  if (!(chosenTab in sections)) return unknownPage(chosenTab);
  const head = h('header.page-head');
  const body = h('div', h('section.card', skeleton(5)));
  const node = h('div.page', h('a.row', { href: '#/volumes' }, icon('back'), t('volume.all')), head, body);
  const listeners = new Set();
  const stops = [];
  let volume = null;
  let headKey = '';

  const show = (found) => {
    const isFirst = !volume;
    volume = found;
    const key = `${found.state} ${found.mountpoint} ${found.label}`;
    if (key !== headKey) {
      headKey = key;
      fill(head, h('div', h('div.row', h('h1.wrap-anywhere', { tabindex: '-1' }, nameOfVolume(found)), statePill(found)),
        h('p.wrap-anywhere', placeText(found))),
      h('div.row', isMounted(found) ? button(t('volume.open'), () => openFolder(volume), { name: 'folder' }) : null, mainButton(found)));
      document.title = `${nameOfVolume(found)} – Nacre`;
    }
    if (isFirst) {
      let section = chosenTab;
      const list = jobList({ wanted: (job) => concerns(job, volume) && (isActive(job) || sections[section].includes(job.kind)), title: t('volume.jobs'), bare: true });
      stops.push(list.stop);
      const context = { now: () => volume, listen: (listener) => {
        listeners.add(listener);
        listener(volume);
      } };
      const made = tabs(t('volume.sections'), Object.keys(sections).map((id) => ({ id, label: t(`volume.tab.${id}`), make: () => {
        listeners.clear();
        return { overview: overviewTab, access: accessTab, care: careTab }[id](context);
      } })), chosenTab, (id) => {
        history.replaceState(null, '', addressOf(found, id));
        section = id;
        list.renew();
      });
      fill(body, h('div.stack', made.node, list.node));
    } else {
      for (const listener of listeners) listener(found);
    }
  };

  let asked = false;
  stops.push(volumes.subscribe(async (list, error) => {
    const found = list?.find((one) => one.path === path);
    if (found) return show(found);
    if (error && !list) return fill(body, errorNote(error));
    if (asked) return null;
    asked = true;
    try {
      show((await get('/api/volumes/at', { path })).volume);
    } catch (failure) {
      fill(head, h('div', h('h1.wrap-anywhere', { tabindex: '-1' }, nameOf(path))));
      fill(body, errorNote(failure));
    }
    asked = false;
    return null;
  }));
  return { node, stop: () => stops.forEach((stop) => stop()) };
}

const concerns = (job, volume) => job.volume !== '' && [volume.path, volume.mountpoint].includes(job.volume);

function placeText(volume) {
  if (volume.state === 'not_mounted') return shown(volume.path);
  return isMounted(volume) ? `${shown(volume.path)} → ${shown(volume.mountpoint)}` : sentence(volume.state_text) || shown(volume.path);
}

function overviewTab(context) {
  const space = h('div.stack.tight');
  const about = h('div');
  const command = h('div');
  const node = h('div.stack', h('section.card', h('h2', t('volume.space_title')), space), h('section.card', h('h2', t('volume.about')), about), loginCard(context),
    h('section.card', h('h2', t('ui.command')), command));
  const stored = h('span');
  const words = h('div.small.muted');
  let key = '';
  context.listen((volume) => {
    if (volume.space) {
      const total = volume.space.stored_bytes + volume.space.free_bytes;
      setPart(stored, total ? volume.space.stored_bytes / total : 0);
      if (!stored.parentNode) {
        fill(space, h('div.meter', { role: 'img', 'aria-label': t('volume.space_title') }, stored), words,
          h('div.row', h('span.key', t('volume.stored')), h('span.key.free', t('volume.free'))));
      }
      setText(words, t('volume.space', { files: bytes(volume.space.file_bytes), stored: bytes(volume.space.stored_bytes), free: bytes(volume.space.free_bytes) }));
    } else {
      stored.remove();
      fill(space, h('p.muted', t('volume.space_unknown')));
    }
    const now = JSON.stringify([volume.state, volume.mountpoint, volume.fingerprint, volume.label, volume.daemon]);
    if (now === key) return;
    key = now;
    fill(about, facts([[t('wizard.folder'), shown(volume.path)], [t('volume.mountpoint'), volume.mountpoint ? shown(volume.mountpoint) : null],
      [t('wizard.label'), volume.label], [t('keys.fingerprint'), volume.fingerprint ? h('code', fingerprint(volume.fingerprint)) : null],
      [t('volume.id'), volume.volume_id ? h('code', volume.volume_id) : null],
      [t('volume.daemon'), volume.daemon?.pid ? t(volume.daemon.answers ? 'volume.daemon.answers' : 'volume.daemon.silent', { pid: String(volume.daemon.pid) }) : null],
      [t('volume.health'), volume.health], [t('volume.engine'), volume.engine]]),
    isMounted(volume) ? h('p.after', h('a', { href: `#/live/${encodeURIComponent(volume.mountpoint)}` }, t('volume.live'))) : null);
    fill(command, commandBox(Object.values(volume.commands ?? {})));
  });
  return node;
}
