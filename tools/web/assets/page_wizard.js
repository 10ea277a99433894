// SPDX-License-Identifier: Apache-2.0
// The wizard for a new volume: place, passphrase, storage, review; then the recovery key.
import { get, giveSecret, session } from './api.js';
import { pathField } from './chooser.js';
import * as commands from './commands.js';
import { fill, h } from './dom.js';
import { check, choices, field, passphrase, select, textInput } from './fields.js';
import { t, tOr } from './i18n.js';
import { join, shown, typed } from './paths.js';
import { facts, showRecoveryKey } from './results.js';
import { engine, start, volumes } from './store.js';
import { announce, button, commandDetails, errorNote, note, pageHead, skeleton } from './ui.js';
import { finish, mount } from './volume_state.js';

const sizeName = (value) => value.replace(/^(\d+)(\w)$/, '$1 $2iB');  // "64K"
const stepNames = ['place', 'secret', 'storage', 'review'];

export function wizardPage() {
  const body = h('div', skeleton(5));
  const node = h('div.page', pageHead(t('wizard.title'), t('wizard.text')), h('section.card.wizard', body));
  engine().then((known) => new Wizard(body, known)).catch((error) => fill(body, errorNote(error)));
  return { node };
}

class Wizard {
  constructor(body, known) {
    Object.assign(this, { body, known, at: 0 });
    this.name = textInput('private', { maxlength: 200 });
    this.nameField = field(t('wizard.name'), this.name, { hint: t('wizard.name.hint') });
    this.folder = pathField(t('wizard.folder'), { value: session.home, hint: t('wizard.folder.hint'), onchange: () => this.checkPlace() });
    this.name.addEventListener('change', () => this.checkPlace());
    this.placeNote = h('div', { 'aria-live': 'polite' });
    this.label = textInput('');
    this.secret = passphrase(t('wizard.passphrase'), { isNew: true, hint: t('wizard.passphrase.hint') });
    this.recovery = check(t('wizard.recovery'), true, null, t('wizard.recovery.hint'));
    const codecs = ['lz77', 'zstd', 'auto', 'none'].filter((name) => known.codecs.some((one) => one.name === name));
    this.codec = choices(t('files.codec'), codecs.map((name) => ({ value: name, label: t(`wizard.codec.${name}`), text: t(`wizard.codec.${name}.text`) })), codecs[0]);
    this.padding = choices(t('files.padding'), known.paddings.map((name) => ({ value: name, label: tOr(`padding.${name}`, name), text: tOr(`wizard.padding.${name}.text`, '') })), known.paddings[0]);
    const modern = known.ciphers.filter((one) => !one.is_legacy);
    this.cipher = select(modern.map((one) => ({ value: one.name, label: tOr(`cipher.${one.name}`, one.name) })), modern.find((one) => one.is_default)?.name);
    this.chunk = select(['4K', '16K', '64K', '256K', '1M'].map((value) => ({ value, label: sizeName(value) })), '64K');
    this.parts = {
      place: () => [h('p.muted', t('wizard.place.text')), h('div.grid-2', this.nameField, this.folder), this.placeNote, field(t('wizard.label'), this.label, { hint: t('wizard.label.hint') }), note('', t('wizard.place.note'))],
      secret: () => [h('p.muted', t('wizard.secret.text')), this.secret.node, this.recovery],
      storage: () => [h('p.muted', t('wizard.storage.text')), h('div.grid-2', this.codec, this.padding),
        h('details', h('summary', t('files.more')), h('div.grid-2', field(t('files.cipher'), this.cipher, { hint: t('files.cipher.hint') }), field(t('wizard.chunk'), this.chunk, { hint: t('wizard.chunk.hint') })))],
      review: () => [this.review()],
    };
    this.draw(false);
    this.proposeName();
  }

  // The first name that is free, of a few.
  async proposeName() {
    const typedBefore = this.name.value;
    for (const name of ['private', 'private-2', 'private-3', 'private-4']) {
      if (this.name.value !== typedBefore) return;
      const isFree = await get('/api/volumes/place', { path: join(this.folder.path(), name) }).then(() => true, () => false);
      if (!isFree || this.name.value !== typedBefore) continue;
      this.name.value = name;
      break;
    }
    this.checkPlace();
  }

  request() {
    return { path: join(this.folder.path(), typed(this.name.value.trim())), label: this.label.value.trim(), codec: this.codec.value, level: 0,
      cipher: this.cipher.value, allow_legacy_cipher: false, padding: this.padding.value, chunk_size: this.chunk.value, recipients: [] };
  }

  review() {
    const wanted = this.request();
    return h('div.stack', facts([[t('wizard.folder'), shown(wanted.path)], [t('wizard.label'), wanted.label], [t('files.codec'), t(`wizard.codec.${wanted.codec}`)],
      [t('files.padding'), tOr(`padding.${wanted.padding}`, wanted.padding)], [t('files.cipher'), tOr(`cipher.${wanted.cipher}`, wanted.cipher)],
      [t('wizard.chunk'), sizeName(wanted.chunk_size)], [t('wizard.recovery'), t(this.recovery.input.checked ? 'ui.yes' : 'ui.no')]]),
    note('warn', t('wizard.review.note')),
    commandDetails(() => [commands.make(wanted), this.recovery.input.checked ? commands.keyAdd({ path: wanted.path, recovery: true }) : '']));
  }

  // Whether a volume can be made there. Says why not, as soon as the place is chosen.
  async checkPlace() {
    const look = this.look = (this.look ?? 0) + 1;
    const text = this.name.value.trim();
    fill(this.placeNote);
    if (!text || !this.folder.path()) return false;
    try {
      const { path } = await get('/api/volumes/place', { path: this.request().path });
      if (look === this.look) fill(this.placeNote, h('p.small.muted.wrap-anywhere', t('wizard.place.free', { path: shown(path) })));
      return true;
    } catch (error) {
      if (look === this.look) fill(this.placeNote, errorNote(error));
      return false;
    }
  }

  async isStepValid() {
    const name = stepNames[this.at];
    if (name === 'place') {
      const text = this.name.value.trim();
      if (!text || text.includes('/') || text === '.' || text === '..') return this.nameField.fail(t('wizard.name.fault'));
      if (!this.folder.path()) return this.folder.fail(t('field.needed'));
      return this.checkPlace();
    }
    if (name === 'secret') return this.secret.isValid();
    return true;
  }

  async go(to) {
    const from = this.at;
    if (to > from && await this.isStepValid() !== true) return;
    if (this.at !== from) return;
    this.at = to;
    this.draw(true);
  }

  draw(focus) {
    const name = stepNames[this.at];
    const steps = h('ol.steps', { 'aria-label': t('wizard.steps') }, stepNames.map((step, index) => h(`li${index < this.at ? '.done' : ''}`,
      { 'aria-current': index === this.at ? 'step' : null }, h('span', `${index + 1}. `), h('span', t(`wizard.step.${step}`)))));
    const heading = h('h2', { tabindex: '-1' }, t(`wizard.step.${name}.title`));
    this.fault = h('div');
    const isLast = this.at === stepNames.length - 1;
    this.next = button(t(isLast ? 'wizard.create' : 'wizard.next'), () => (isLast ? this.create() : this.go(this.at + 1)), { kind: 'primary', 'data-next': name });
    fill(this.body, h('form.stack', { onsubmit: (event) => {
      event.preventDefault();
      this.next.click();
    } }, steps, heading, this.parts[name](), this.fault, h('div.row.apart',
      this.at ? button(t('wizard.back'), () => this.go(this.at - 1), { name: 'back' }) : h('a.button', { href: '#/volumes' }, t('ui.cancel')), this.next),
    h('button.visually-hidden', { type: 'submit', tabindex: '-1', 'aria-hidden': 'true' })));
    if (focus) (this.body.querySelector('form input:not([type=radio]):not([type=checkbox])') ?? heading).focus();
  }

  async create() {
    this.next.disabled = true;
    fill(this.fault, note('', t('wizard.working')));
    announce(t('wizard.working'));
    const wanted = this.request();
    try {
      const text = this.secret.take();
      const secret = await giveSecret(text);
      const second = this.recovery.input.checked ? await giveSecret(text) : null;
      this.secret.clear();
      const job = await finish(await start('/api/volumes/make', { ...wanted, secret }));
      await volumes.refresh();
      await this.made(job.result?.volume ?? { path: wanted.path, state: 'not_mounted' }, second);
    } catch (error) {
      this.at = ['exists', 'not empty', 'permission denied', 'read-only', 'no space', 'not found'].includes(error.code) ? 0 : 1;
      this.draw(false);
      fill(this.fault, errorNote(error), h('p.muted.small', t('wizard.type_again')));
    }
  }

  async made(volume, secret) {
    const place = h('div');
    const heading = h('h2', { tabindex: '-1' }, t('wizard.made', { name: volume.label || volume.name || shown(volume.path) }));
    fill(this.body, h('div.stack', heading, h('p', t('wizard.made.text')), facts([[t('wizard.folder'), shown(volume.path)]]), place,
      h('div.row', button(t('volume.mount'), async () => {
        await mount(volume);
        location.hash = '#/volumes';
      }, { kind: 'primary', name: 'unlock', 'data-mount-new': true }), h('a.button', { href: '#/volumes' }, t('wizard.later')))));
    heading.focus();
    if (!secret) return;
    fill(place, note('', t('wizard.making_recovery')));
    try {
      const job = await finish(await start('/api/volumes/keys/add', { path: volume.path, secret, label: t('recovery.label'), recovery: true }));
      await showRecoveryKey(job.result.secret, volume.path);
      fill(place, note('ok', t('wizard.recovery_made')));
    } catch (error) {
      fill(place, errorNote(error));
    }
  }
}
