// Requests to the driver. Paths are relative: the page also works below a path of a proxy.

/** A request that was not answered, or answered with an error. `status` 0: there was no answer. */
export class Unanswered extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Unanswered(0, "The driver does not answer.");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new Unanswered(response.status, told.errors?.join(" ") || `The driver answered with ${response.status}.`);
}

export const get = async (path) => (await ask(path)).json();
export const getText = async (path) => (await ask(path)).text();

export async function send(method, path, body) {
  const options = { method, headers: { "Content-Type": "application/json" }, body: body && JSON.stringify(body) };
  return (await ask(path, options)).json();
}

export const jobPath = (jobId) => `jobs/${encodeURIComponent(jobId)}`;
