// SPDX-License-Identifier: Apache-2.0
// The server, as tools/web/API.md describes it. The one-time token comes in the URL's fragment and
// leaves the address bar before anything else happens; the bearer token lives in sessionStorage. No
// request has the token before the server has proved itself (proof.js).

import { shown } from './paths.js';
import { forgetSession, hasSession, isProved, keepSession, kept, seal } from './proof.js';

export const session = { version: '', user: '', home: '/', idle_minutes: 10 };

// Events: 'lost' (no session; detail is 'server' if another server answers), 'away' (no answer),
// 'back'.
export const connection = new EventTarget();
let isAway = false;
let isLost = false;  // nothing is sent any more

export class ApiError extends Error {
  constructor(status, error = {}) {
    super(error.what || `HTTP ${status}`);
    this.status = status;
    Object.assign(this, { code: '', what: this.message, where: '', next: '', command: '', check: null }, error);
  }
}

function setAway(away) {
  if (away === isAway) return;
  isAway = away;
  connection.dispatchEvent(new Event(away ? 'away' : 'back'));
}

function lose(why) {
  forgetSession();
  if (isLost) return;
  isLost = true;
  connection.dispatchEvent(new CustomEvent('lost', { detail: why }));
}

const noSession = () => new ApiError(401, { code: 'lost', what: 'this page has no session' });

function away(failure) {
  if (isLost) return noSession();
  setAway(true);
  return new ApiError(0, { code: 'away', what: failure.message });
}

// Comes before each request with a token. After a wrong proof, nothing is sent.
async function prove() {
  if (isLost || !hasSession()) {
    lose('session');
    throw noSession();
  }
  let isRight;
  try {
    isRight = await isProved();
  } catch (failure) {
    throw away(failure);
  }
  if (!isRight) lose('server');
  if (isLost) throw noSession();
  setAway(false);
}

async function request(method, path, { body, type, raw, isFirst } = {}) {
  const headers = {};
  if (!isFirst) {
    await prove();
    headers.Authorization = `Bearer ${kept('token')}`;
  }
  if (body !== undefined) headers['Content-Type'] = type ?? 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method, headers, cache: 'no-store', credentials: 'omit',
      body: body === undefined || type ? body : JSON.stringify(body),
    });
  } catch (failure) {
    throw away(failure);
  }
  if (response.ok && raw) return response.text();
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) lose('session');
  throw new ApiError(response.status, answer.error);
}

export function get(path, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined));
  return request('GET', text.size ? `${path}?${text}` : path);
}
export const post = (path, body = {}) => request('POST', path, { body });
export const remove = (path) => request('DELETE', path);

// True if the page has a session. Call it once, before anything else of this module.
export async function begin() {
  const oneTime = /^#token=([^&]+)/.exec(location.hash)?.[1];
  if (oneTime) {
    history.replaceState(null, '', `${location.pathname}#/volumes`);
    forgetSession();
    try {
      const answer = await request('POST', '/api/session',
        { body: { token: decodeURIComponent(oneTime) }, isFirst: true });
      keepSession(answer);
      Object.assign(session, answer);
      return true;
    } catch {
      return false;
    }
  }
  if (!hasSession()) return false;
  try {
    Object.assign(session, await get('/api/session'));
    return true;
  } catch {
    return false;
  }
}

// A one-time address. Through ssh the port is another one than the server's, so it is this page's.
export async function linkForAnotherTab() {
  const { url } = await post('/api/session/link');
  return `${location.origin}/${url.slice(url.indexOf('#'))}`;
}

// Gives a passphrase to the server, which keeps it for one use, and returns its ID. It is encrypted,
// so that another server could not read it even if it came between the proof and this request.
export async function giveSecret(text) {
  if (isLost || !hasSession()) throw noSession();
  const plain = new TextEncoder().encode(text);
  try {
    const body = await seal(plain);
    return (await request('POST', '/api/secrets/sealed', { body, type: 'application/octet-stream' })).secret;
  } finally {
    plain.fill(0);
  }
}
export const takeSecret = (id) => request('GET', `/api/secrets/${encodeURIComponent(id)}`, { raw: true });

// Streams a dropped file to the server. progress(share) is called meanwhile; signal aborts.
export async function upload(file, progress, signal) {
  await prove();
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open('POST', `/api/uploads?name=${encodeURIComponent(file.name)}`);
    call.setRequestHeader('Authorization', `Bearer ${kept('token')}`);
    call.setRequestHeader('Content-Type', 'application/octet-stream');
    call.upload.onprogress = (event) => progress(event.total ? event.loaded / event.total : 0);
    call.onerror = () => reject(new ApiError(0, { code: 'away', what: file.name }));
    call.onabort = () => reject(new ApiError(0, { code: 'cancelled', what: file.name }));
    call.onload = () => {
      let answer = {};
      try { answer = JSON.parse(call.responseText); } catch { /* the status tells enough */ }
      if (call.status < 300) resolve(answer.upload);
      else reject(new ApiError(call.status, answer.error));
    };
    if (signal.aborted) {
      call.onabort();
      return;
    }
    signal.addEventListener('abort', () => call.abort());
    call.send(file);
  });
}

// Opens a result's one-time address. The browser saves it, since the answer is an attachment.
export async function download(job, index) {
  const { url, name } = await post(`/api/jobs/${encodeURIComponent(job)}/download`, { file: index });
  const link = document.createElement('a');
  link.href = url;
  link.download = shown(name);
  link.click();
}
