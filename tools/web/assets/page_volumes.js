// SPDX-License-Identifier: Apache-2.0
// Volumes: one list of those that are known or mounted, each with one main button.
import { get } from './api.js';
import { choose } from './chooser.js';
import { fill, h, reconcile, setPart, setText } from './dom.js';
import { bytes, dash, percent, sentence } from './format.js';
import { t } from './i18n.js';
import { icon } from './icons.js';
import { shown } from './paths.js';
import { volumes } from './store.js';
import { button, dialog, empty, errorNote, pageHead, skeleton } from './ui.js';
import { isMounted, mainButton, nameOfVolume, openFolder, statePill } from './volume_state.js';

export const addressOf = (volume, tab) => `#/volumes/${encodeURIComponent(volume.path)}${tab ? `/${tab}` : ''}`;

async function openOther() {
  const found = await choose({ mode: 'folder', title: t('volumes.open_other') });
  if (!found) return;
  try {
    const { volume } = await get('/api/volumes/at', { path: found[0].path });
    location.hash = addressOf(volume);
  } catch (error) {
    await dialog({ title: t('volumes.open_other'), body: errorNote(error), actions: [{ label: t('ui.close'), kind: 'primary' }] });
  }
}

export function volumesPage() {
  const list = h('ul.divided.card.flush', { 'aria-label': t('volumes.list'), hidden: true });
  const place = h('div', h('section.card', skeleton(4)));
  const node = h('div.page', pageHead(t('volumes.title'), t('volumes.text'),
    button(t('volumes.open_other'), openOther, { name: 'folder' }),
    h('a.button.primary', { href: '#/new' }, icon('plus'), h('span', t('volumes.make')))), place, list);
  const stop = volumes.subscribe((found, error) => {
    if (error && !found) return fill(place, errorNote(error));
    list.hidden = !found.length;
    if (found.length) place.replaceChildren();
    else if (!place.querySelector('.empty')) {
      fill(place, h('section.card', empty('volume', t('volumes.none'), t('volumes.none.text'),
        h('a.button.primary', { href: '#/new' }, icon('plus'), h('span', t('volumes.make'))))));
    }
    reconcile(list, found, (volume) => volume.path, (volume) => new VolumeRow(volume));
    return null;
  });
  return { node, stop };
}

// What goes on in a volume: a rotation or a scrub with its progress.
export function taskOf(volume) {
  const rotation = volume.rotation?.rotation && volume.rotation.rotation !== 'none' ? volume.rotation : null;
  const scrub = ['running', 'paused'].includes(volume.scrub?.state) ? volume.scrub : null;
  const task = rotation ?? scrub;
  if (!task) return null;
  const state = rotation ? rotation.rotation : scrub.state;
  return { kind: rotation ? 'rotation' : 'scrub', state, share: task.total_bytes ? task.done_bytes / task.total_bytes : 0, task };
}

class VolumeRow {
  constructor(volume) {
    this.avatar = h('span.avatar', icon('volume'));
    this.name = h('a.title.wrap-anywhere', { href: addressOf(volume) });
    this.path = h('div.small.muted.wrap-anywhere');
    this.space = h('div.small.muted');
    this.state = h('span');
    this.bar = h('span');
    this.task = h('div.stack.tight', { hidden: true }, this.words = h('span.small'), h('div.bar', this.bar));
    this.actions = h('div.row.nowrap.actions');
    this.node = h('li.item', { 'data-volume': volume.path }, this.avatar,
      h('div.grow.stack.tight', h('div', h('div.row', this.name, this.state), this.path, this.space), this.task), this.actions);
  }

  update(volume) {
    setText(this.name, nameOfVolume(volume));
    setText(this.path, isMounted(volume) || volume.state === 'daemon_ended'
      ? `${shown(volume.path)} → ${shown(volume.mountpoint)}${volume.read_only ? ` (${t('mount.read_only')})` : ''}` : shown(volume.path));
    setText(this.space, volume.space ? t('volume.space', { files: bytes(volume.space.file_bytes), stored: bytes(volume.space.stored_bytes), free: bytes(volume.space.free_bytes) })
      : volume.state === 'not_mounted' ? '' : sentence(volume.daemon?.error ?? volume.state_text));
    this.avatar.classList.toggle('on', isMounted(volume));
    const task = taskOf(volume);
    this.task.hidden = !task;
    if (task) {
      setText(this.words, `${t(`task.${task.kind}.${task.state}`)} · ${percent(task.share)}`);
      setPart(this.bar, task.share);
    }
    const key = `${volume.state} ${volume.mountpoint ?? dash}`;
    if (this.key === key) return;
    this.key = key;
    this.node.dataset.state = volume.state;
    fill(this.state, statePill(volume));
    fill(this.actions, isMounted(volume) ? button(t('volume.open'), () => openFolder(volume), { kind: 'quiet', name: 'folder', 'aria-label': `${t('volume.open')}: ${nameOfVolume(volume)}` }) : null,
      mainButton(volume));
  }
}
