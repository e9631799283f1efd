// Requests to the console's own server.

export class ApiError extends Error {
  constructor(status, body) {
    super(body.error || `the console answered ${status}`);
    this.status = status;
    this.code = body.code;
  }
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: 'same-origin', ...options });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, { error: 'the console does not answer: is it running?' });
  }
  let body;
  try { body = await answer.json(); } catch { body = {}; }
  if (!answer.ok) throw new ApiError(answer.status, body);
  return body;
}

export function get(resource, parameters, signal) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters || {})) {
    if (value !== undefined && value !== null && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return ask(`/api/${resource}${text ? `?${text}` : ''}`, { signal });
}

export function send(resource, method, body) {
  return ask(`/api/${resource}`, { method, body: body && JSON.stringify(body), headers: { 'Content-Type': 'application/json' } });
}
