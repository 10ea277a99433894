// SPDX-License-Identifier: Apache-2.0
// Files: encrypt, decrypt, compress, inspect. The form of an operation, and its jobs next to it.
import { giveSecret, post } from './api.js';
import { choose, pathField } from './chooser.js';
import { classicalOperations } from './classical.js';
import * as commands from './commands.js';
import { fill, h } from './dom.js';
import { check, field, passphrase, segmented, select } from './fields.js';
import { bytes, duration } from './format.js';
import { currentLanguage, t, tOr } from './i18n.js';
import { icon } from './icons.js';
import { Inputs, inputsField } from './inputs.js';
import { jobList } from './jobs.js';
import { openerFields } from './opener.js';
import { nameOf } from './paths.js';
import { keyPrint } from './results.js';
import { engine, isActive, start, whenEnded } from './store.js';
import { announce, button, commandDetails, errorNote, iconButton, named, note, pageHead, skeleton, unknownPage } from './ui.js';

const operations = [['encrypt', 'lock'], ['decrypt', 'unlock'], ['compress', 'compress'], ['inspect', 'inspect']];
const kinds = ['encrypt', 'decrypt', 'inspect'];
// Kept while the page is open, so that a look at another page loses nothing but secrets.
const forms = new Map();
const inputsOf = { encrypt: new Inputs(), decrypt: new Inputs(), inspect: new Inputs() };
inputsOf.compress = inputsOf.encrypt;

export function filesPage([operation = 'encrypt', method, engineName]) {
  if (!(operation in inputsOf)) return unknownPage(operation);
  const listed = operation === 'compress' ? 'encrypt' : operation;
  const form = h('div', skeleton(6));
  const list = jobList({ wanted: (job) => job.kind === listed || (kinds.includes(job.kind) && isActive(job)), hint: t('files.no_jobs') });
  const tiles = h('nav.grid-4', { 'aria-label': t('files.operations') }, operations.map(([name, sign]) => h('a.tile',
    { href: `#/files/${name}`, 'aria-current': name === operation ? 'page' : null, 'data-operation': name },
    icon(sign), h('span', h('strong', t(`files.${name}`)), h('span.muted.small', t(`files.${name}.short`))))));
  const page = { node: h('div.page', pageHead(t('files.title'), t('files.text')), tiles,
    h('div.columns', form, h('div.aside', list.node)), classicalOperations(operation, method, engineName)) };
  let made = null;
  engine().then((found) => {
    const name = [currentLanguage(), operation, method, engineName].join(' ');
    made = forms.get(name) ?? new FileForm(name, operation, found, { method, engineName });
    made.begin();
    form.replaceWith(made.node);
  }).catch((error) => fill(form, errorNote(error)));
  page.stop = () => {
    list.stop();
    made?.stop();
  };
  return page;
}

class FileForm {
  constructor(name, operation, known, preset) {
    Object.assign(this, { name, operation, known, preset, inputs: inputsOf[operation], recipients: [] });
    this.encrypts = operation === 'encrypt' || operation === 'compress';
    this.onlyContainers = operation === 'decrypt' || operation === 'inspect';
    this.files = inputsField(this.inputs, {
      text: t(this.onlyContainers ? 'inputs.drop_containers' : 'inputs.drop') });
    this.fault = h('div');
    this.estimate = h('div.hint.small.muted', { 'aria-live': 'polite' });
    this.submit = button(t(`files.${operation}.go`), () => this.run(), { kind: 'primary', 'data-submit': operation });
    const parts = operation === 'compress' ? [this.howPart(), this.keysPart()] : this.encrypts ? [this.keysPart(), this.howPart()] : [this.secretPart()];
    if (operation !== 'inspect') parts.push(this.outputPart());
    this.command = commandDetails(() => this.commandText());
    this.node = h('form.card', { 'aria-label': t(`files.${operation}`), onsubmit: (event) => {
      event.preventDefault();
      this.run();
    } },
    this.section(t('files.what'), this.files.node), parts,
    h('div.section.stack', this.fault, h('div.form-foot', this.command, this.submit)));
    this.node.addEventListener('input', () => this.fault.replaceChildren());
    this.listener = () => this.changed();
  }

  begin() {
    this.files.begin();
    this.inputs.listeners.add(this.listener);
    this.changed();
  }

  section(title, ...content) {
    return h('section.section.stack', h('h2', title), content);
  }

  keysPart() {
    this.passphrase = passphrase(t('files.passphrase'), { isNew: true });
    this.recipientList = h('ul.divided');
    this.drawRecipients();
    const rsaFirst = this.preset.method === 'rsa';
    const parts = [rsaFirst ? null : this.passphrase.node,
      h('div.field', h('span.label', t('files.recipients')), h('span.hint', t('files.recipients.hint')), this.recipientList,
        h('div', button(t('files.add_recipient'), () => this.addRecipient(), { name: 'plus', kind: 'small' }))),
      rsaFirst ? h('details', h('summary', t('files.and_passphrase')), this.passphrase.node) : null];
    return this.section(t('files.who'), this.operation === 'compress' ? h('p.muted', t('files.compress.why_key')) : null, parts);
  }

  async addRecipient() {
    const found = await choose({ title: t('files.add_recipient'), multiple: true });
    for (const entry of found ?? []) if (!this.recipients.includes(entry.path)) this.recipients.push(entry.path);
    this.drawRecipients();
    this.changed();
  }

  drawRecipients() {
    fill(this.recipientList, this.recipients.map((path) => h('li.item.tight', icon('key'), h('div.grow', h('div.wrap-anywhere', nameOf(path)), keyPrint(path)),
      iconButton(t('inputs.remove', { name: nameOf(path) }), 'close', () => {
        this.recipients = this.recipients.filter((other) => other !== path);
        this.drawRecipients();
        this.changed();
      }, true))));
  }

  howPart() {
    const { codecs, ciphers, paddings, engines } = this.known;
    const usual = (list) => list.find((one) => one.is_default)?.name ?? list[0].name;
    const wanted = { des: 'des-cbc', '3des': 'des-ede3-cbc' }[this.preset.method] ?? usual(ciphers);
    this.cipher = select([...ciphers.filter((one) => !one.is_legacy), ...ciphers.filter((one) => one.is_legacy)].map((one) => ({
      value: one.name, label: `${tOr(`cipher.${one.name}`, one.name)}${one.is_legacy ? ` – ${t('files.legacy')}` : ''}` })),
    ciphers.some((one) => one.name === wanted) ? wanted : usual(ciphers), () => this.changed());
    this.codec = select(codecs.map((one) => ({ value: one.name, label: tOr(`codec.${one.name}`, one.name) })), usual(codecs), () => this.changed());
    const levels = Array.from({ length: (this.known.level_max ?? 9) + 1 }, (_, level) => ({ value: String(level), label: level ? String(level) : t('files.level.usual') }));
    this.level = select(levels, '0', () => this.changed());
    this.padding = select(paddings.map((name) => ({ value: name, label: tOr(`padding.${name}`, name) })), 'none', () => this.changed());
    this.legacy = check(t('files.legacy.consent'), Boolean(this.preset.method?.includes('des')), () => this.changed());
    this.legacyNote = note('warn', h('strong', t('files.legacy.title')), h('div', t('files.legacy.text')), h('div', this.legacy));
    const name = engines.find((one) => one.name === this.preset.engineName)?.is_available ? this.preset.engineName : 'auto';
    this.engine = segmented(t('files.engine'), engines.map((one) => ({ value: one.name, label: named('engine', one.name),
      disabled: !one.is_available, title: one.why })), name, () => this.changed());
    const missing = engines.find((one) => !one.is_available);
    const unavailable = missing ? h('div.hint.small.muted', t('files.engine.missing', { name: named('engine', missing.name), why: missing.why })) : null;
    return this.section(t('files.how'),
      h('div.grid-2', field(t('files.codec'), this.codec, { hint: t('files.codec.hint') }), field(t('files.cipher'), this.cipher, { hint: t('files.cipher.hint') })),
      this.legacyNote, h('div.stack.tight', this.engine, this.estimate, unavailable),
      h('details', h('summary', t('files.more')), h('div.grid-2',
        field(t('files.level'), this.level, { hint: t('files.level.hint') }), field(t('files.padding'), this.padding, { hint: t('files.padding.hint') }))));
  }

  secretPart() {
    this.opener = openerFields({ optional: this.operation === 'inspect', onchange: () => this.changed() });
    const parts = [this.opener.node];
    if (this.operation === 'decrypt') {
      const { engines } = this.known;
      const wanted = engines.find((one) => one.name === this.preset.engineName)?.is_available ? this.preset.engineName : 'auto';
      this.engine = segmented(t('files.engine'), engines.map((one) => ({ value: one.name, label: named('engine', one.name),
        disabled: !one.is_available, title: one.why })), wanted, () => this.changed());
      parts.push(this.engine);
    }
    return this.section(t('files.open_with'), this.operation === 'inspect' ? h('p.muted', t('files.inspect.hint')) : null, parts);
  }

  outputPart() {
    this.folder = pathField(t('files.output.folder_label'), { onchange: () => this.changed() });
    this.output = segmented(t('files.output'), ['next_to_input', 'folder', 'download'].map((value) => ({ value, label: t(`files.output.${value}`) })),
      this.inputs.hasUploads ? 'download' : 'next_to_input', () => this.changed());
    this.outputHint = h('p.muted.small');
    this.recursive = check(t('files.recursive'), true, () => this.changed());
    this.replace = check(t('files.replace'), false, () => this.changed());
    this.removeInput = check(t('files.remove_input'), false, () => this.changed(), t('files.remove_input.hint'));
    return this.section(t('files.result'), this.output, this.outputHint, this.folder, this.recursive, this.replace, this.removeInput);
  }

  changed() {
    forms.set(this.name, this);
    const names = this.inputs.hasUploads;
    if (this.output) {
      const [next] = this.output.querySelectorAll('input');
      next.disabled = names;
      if (names && this.output.value === 'next_to_input') this.output.value = 'download';
      this.folder.hidden = this.output.value !== 'folder';
      this.outputHint.textContent = t(names && this.output.value === 'download' ? 'files.output.uploads' : `files.output.${this.output.value}.hint`);
      this.removeInput.hidden = this.output.value === 'download' || names;
      this.recursive.hidden = !this.inputs.hasFolders;
    }
    if (this.cipher) this.legacyNote.hidden = !this.isLegacy();
    this.command?.renew();
    clearTimeout(this.timer);
    if (this.encrypts) this.timer = setTimeout(() => this.refreshEstimate(), 300);
  }

  isLegacy() {
    return Boolean(this.known.ciphers.find((one) => one.name === this.cipher.value)?.is_legacy);
  }

  async refreshEstimate() {
    const inputs = this.inputs.items.filter((item) => item.path).map((item) => ({ path: item.path }));
    if (!inputs.length) {
      this.estimate.textContent = t('files.engine.hint');
      return;
    }
    try {
      const found = await post('/api/files/estimate', { inputs, codec: this.codec.value, cipher: this.cipher.value, recursive: true });
      const times = found.engines.filter((one) => one.seconds !== null)
        .map((one) => t('files.estimate.engine', { name: named('engine', one.name), time: duration(one.seconds) }));
      this.estimate.textContent = [t('files.estimate', { n: found.file_count, size: bytes(found.bytes) }), ...times,
        found.auto ? t('files.estimate.auto', { name: named('engine', found.auto) }) : ''].filter(Boolean).join(' · ');
    } catch (error) {
      this.estimate.textContent = error.what;
    }
  }

  body() {
    const body = { inputs: this.inputs.body };
    if (this.output) {
      body.output = { kind: this.output.value };
      if (this.output.value === 'folder') body.output.path = this.folder.path();
      Object.assign(body, { replace: this.replace.input.checked, recursive: this.inputs.hasFolders && this.recursive.input.checked,
        remove_input: !this.removeInput.hidden && this.removeInput.input.checked });
    }
    if (this.engine) body.engine = this.engine.value;
    if (this.encrypts) {
      Object.assign(body, { recipients: this.recipients, codec: this.codec.value, level: Number(this.level.value), cipher: this.cipher.value,
        allow_legacy_cipher: this.isLegacy() && this.legacy.input.checked, padding: this.padding.value });
    } else {
      this.opener.addTo(body);
    }
    return body;
  }

  commandText() {
    const body = { ...this.body(), inputs: this.inputs.forCommand };
    return this.encrypts ? commands.encrypt(body) : commands[this.operation](body);
  }

  isComplete() {
    const say = (key) => {
      fill(this.fault, note('bad', t(key)));
      this.fault.firstChild.setAttribute('role', 'alert');
      return false;
    };
    this.fault.replaceChildren();
    if (!this.inputs.items.length) return say('files.fault.no_files');
    if (this.inputs.isUploading) return say('files.fault.uploading');
    if (this.output?.value === 'folder' && !this.folder.path()) {
      this.folder.fail(t('field.needed'));
      return false;
    }
    if (!this.encrypts) return this.opener.isValid();
    if (this.passphrase.isEmpty() && !this.recipients.length) return say('files.fault.no_key');
    if (this.isLegacy() && !this.legacy.input.checked) return say('files.fault.legacy');
    return this.passphrase.isEmpty() || this.passphrase.isValid();
  }

  async run() {
    if (this.submit.disabled || !this.isComplete()) return;
    this.submit.disabled = true;
    try {
      const body = this.body();
      if (this.encrypts) body.secrets = this.passphrase.isEmpty() ? [] : [await giveSecret(this.passphrase.take())];
      else await this.opener.giveTo(body);
      const job = await start(`/api/files/${this.encrypts ? 'encrypt' : this.operation}`, body);
      this.passphrase?.clear();
      const sent = this.inputs.take();
      whenEnded(job.id).then((done) => this.ended(done, sent, Boolean(body.secret || body.secrets?.length)));
      announce(t('files.started'));
      if (window.innerWidth <= 1000) document.querySelector('.aside')?.scrollIntoView({ block: 'start' });
    } catch (error) {
      fill(this.fault, errorNote(error));
    } finally {
      this.submit.disabled = false;
    }
  }

  // After a failure the files that failed are chosen again; all other fields still have their values.
  ended(job, sent, hadSecret) {
    const isDone = (item) => job.state === 'done' || job.files?.some((file) => file.state === 'done' && file.input === item.path);
    this.inputs.drop(sent.filter(isDone));
    const left = sent.filter((item) => !isDone(item));
    if (!left.length) {
      forms.delete(this.name);
      return;
    }
    this.inputs.giveBack(left);
    fill(this.fault, note('warn', t('form.failed'), ' ', hadSecret ? t('form.type_again') : ''));
  }

  stop() {
    clearTimeout(this.timer);
    this.passphrase?.clear();
    this.opener?.clear();
    this.files.stop();
    this.inputs.listeners.delete(this.listener);
  }
}
