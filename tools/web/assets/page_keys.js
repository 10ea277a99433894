// SPDX-License-Identifier: Apache-2.0
// Key pairs: makes one or thousands, and shows public keys to give to others.
import { get, giveSecret, session } from './api.js';
import { choose, pathField } from './chooser.js';
import * as commands from './commands.js';
import { fill, h } from './dom.js';
import { check, field, passphrase, segmented, select, textInput } from './fields.js';
import { fingerprint, number } from './format.js';
import { t } from './i18n.js';
import { jobList } from './jobs.js';
import { nameOf, typed } from './paths.js';
import { facts } from './results.js';
import { engine, start, whenEnded } from './store.js';
import { announce, button, commandDetails, copyText, errorNote, named, note, pageHead, skeleton } from './ui.js';

export function keysPage([engineName]) {
  const form = h('div', skeleton(6));
  const list = jobList({ wanted: (job) => job.kind === 'keygen', hint: t('keys.no_jobs') });
  engine().then((known) => form.replaceWith(keyForm(known, engineName))).catch((error) => fill(form, errorNote(error)));
  return { node: h('div.page', pageHead(t('keys.title'), t('keys.text')),
    h('div.columns', h('div.stack', form, publicKeyCard()), h('div.aside', list.node))), stop: list.stop };
}

function keyForm({ rsa, engines }, engineName) {
  const name = textInput(session.user || 'me');
  const nameField = field(t('keys.name'), name, { hint: t('keys.name.hint') });
  const folder = pathField(t('keys.folder'), { value: session.home, onchange: () => changed() });
  const sizes = rsa.sizes.filter((size) => size >= rsa.bits_use_min);
  const bits = select(sizes.map((size) => ({ value: String(size), label: t('keys.size', { bits: String(size) }) })), String(rsa.bits_default), () => changed());
  const count = textInput('1', { type: 'number', min: '1', max: String(rsa.count_max), inputmode: 'numeric' });
  const countField = field(t('keys.count'), count, { hint: t('keys.count.hint', { n: rsa.count_max }) });
  const secret = passphrase(t('keys.passphrase'), { isNew: true, hint: t('keys.passphrase.hint') });
  const noSecret = check(t('keys.no_passphrase'), false, () => changed(), t('keys.no_passphrase.hint'));
  const wanted = engines.find((one) => one.name === engineName)?.is_available ? engineName : 'auto';
  const by = segmented(t('files.engine'), engines.map((one) => ({ value: one.name, label: named('engine', one.name), disabled: !one.is_available, title: one.why })), wanted, () => changed());
  const fault = h('div');
  const body = () => ({ folder: folder.path(), name: typed(name.value.trim()), bits: Number(bits.value), count: Number(count.value),
    ...(noSecret.input.checked ? { no_passphrase: true } : {}), engine: by.value });
  const command = commandDetails(() => commands.keygen(body()));
  const submit = button(t('keys.go'), () => run(), { kind: 'primary', 'data-submit': 'keygen' });
  const changed = () => {
    secret.node.hidden = noSecret.input.checked;
    command.renew();
  };
  for (const input of [name, count]) input.addEventListener('input', () => command.renew());
  const run = async () => {
    fault.replaceChildren();
    if (!name.value.trim()) return nameField.fail(t('field.needed'));
    if (!Number.isInteger(Number(count.value)) || Number(count.value) < 1 || Number(count.value) > rsa.count_max) return countField.fail(t('keys.count.fault', { n: rsa.count_max }));
    if (!noSecret.input.checked && !secret.isValid()) return undefined;
    submit.disabled = true;
    try {
      const sent = body();
      if (!sent.no_passphrase) sent.secret = await giveSecret(secret.take());
      const job = await start('/api/keys/generate', sent);
      secret.clear();
      announce(t('files.started'));
      whenEnded(job.id).then((done) => {
        if (done.state !== 'done') fill(fault, note('warn', t('form.failed'), ' ', sent.secret ? t('form.type_again') : ''));
      });
    } catch (error) {
      fill(fault, errorNote(error));
    } finally {
      submit.disabled = false;
    }
    return undefined;
  };
  changed();
  return h('form.card', { 'aria-label': t('keys.make'), onsubmit: (event) => {
    event.preventDefault();
    run();
  } },
  h('section.section.stack', h('h2', t('keys.make')), h('div.grid-2', nameField, field(t('keys.bits'), bits, { hint: t('keys.bits.hint', { bits: String(rsa.bits_use_min) }) })), folder,
    h('div.grid-2', countField, by)),
  h('section.section.stack', h('h2', t('keys.protect')), noSecret, secret.node),
  h('div.section.stack', fault, h('div.form-foot', command, submit)));
}

function publicKeyCard() {
  const place = h('div');
  const look = async () => {
    const found = await choose({ title: t('keys.look.choose') });
    if (!found) return;
    try {
      const key = await get('/api/keys/public', { path: found[0].path });
      fill(place, h('div.stack', facts([[t('keys.file'), nameOf(key.path)], [t('keys.bits'), number(key.bits)],
        [t('keys.fingerprint'), h('code', fingerprint(key.fingerprint))]]),
      h('div.command', h('pre', { tabindex: '0' }, key.pem), h('div.row.end', button(t('keys.copy_pem'), () => copyText(key.pem), { kind: 'quiet.small', name: 'copy' })))));
    } catch (error) {
      fill(place, errorNote(error));
    }
  };
  return h('section.card.stack', h('div', h('h2', t('keys.look')), h('p.muted', t('keys.look.text'))),
    h('div', button(t('keys.look.choose'), look, { name: 'key' })), place);
}
