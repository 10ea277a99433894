// SPDX-License-Identifier: Apache-2.0
// The server, as tools/web/API.md describes it. The one-time token comes in the URL's fragment and
// leaves the address bar before anything else happens; the bearer token lives in sessionStorage.

import { shown } from './paths.js';

const tokenKey = 'nacre.token';
export const session = { version: '', user: '', home: '/', idle_minutes: 10 };

// Events: 'lost' (no session), 'away' (no answer), 'back'.
export const connection = new EventTarget();
let isAway = false;

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

async function request(method, path, { body, type, raw } = {}) {
  const headers = {};
  const token = sessionStorage.getItem(tokenKey);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers['Content-Type'] = type ?? 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method, headers, cache: 'no-store', credentials: 'omit',
      body: body === undefined || type ? body : JSON.stringify(body),
    });
  } catch (failure) {
    setAway(true);
    throw new ApiError(0, { code: 'away', what: failure.message });
  }
  setAway(false);
  if (response.ok && raw) return response.text();
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  if (response.status === 401) connection.dispatchEvent(new Event('lost'));
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
    sessionStorage.removeItem(tokenKey);
    try {
      const answer = await post('/api/session', { token: decodeURIComponent(oneTime) });
      sessionStorage.setItem(tokenKey, answer.token);
      delete answer.token;
      Object.assign(session, answer);
      return true;
    } catch {
      return false;
    }
  }
  if (!sessionStorage.getItem(tokenKey)) return false;
  try {
    Object.assign(session, await get('/api/session'));
    return true;
  } catch {
    return false;
  }
}

// Gives a passphrase to the server, which keeps it for one use, and returns its ID.
export async function giveSecret(text) {
  const body = new TextEncoder().encode(text);
  try {
    return (await request('POST', '/api/secrets', { body, type: 'application/octet-stream' })).secret;
  } finally {
    body.fill(0);
  }
}
export const takeSecret = (id) => request('GET', `/api/secrets/${encodeURIComponent(id)}`, { raw: true });

// Streams a dropped file to the server. progress(share) is called meanwhile; signal aborts.
export function upload(file, progress, signal) {
  return new Promise((resolve, reject) => {
    const call = new XMLHttpRequest();
    call.open('POST', `/api/uploads?name=${encodeURIComponent(file.name)}`);
    call.setRequestHeader('Authorization', `Bearer ${sessionStorage.getItem(tokenKey)}`);
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
