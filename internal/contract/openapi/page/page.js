// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

linkBack();

(async () => {
  const response = await fetch('hooks.json');
  if (!response.ok) {
    document.getElementById('hooks').textContent = `hooks.json was answered ${response.status} ${response.statusText}`;
    return;
  }
  const spec = await response.json();
  oneRowForEachHook(spec);
  SwaggerUIBundle({
    spec,
    dom_id: '#hooks',
    deepLinking: true,
    docExpansion: 'list',
    // A Cluster is large: its schema is there to be opened, and each request has a small example.
    defaultModelsExpandDepth: 0,
    defaultModelRendering: 'example',
    displayRequestDuration: true,
    filter: true,
    tryItOutEnabled: true,
    // Swagger's own validator is on another host.
    validatorUrl: null,
    requestInterceptor: (request) => explained(withoutEmptyName(request)),
  });
  offerHandlers(spec);
})();

// linkBack links to the status page that led here, as its address says. One of another host is not trusted.
function linkBack() {
  const nav = document.querySelector('nav');
  const from = URL.parse(new URLSearchParams(location.search).get('status') ?? '');
  const host = (name) => ['127.0.0.1', '[::1]'].includes(name) ? 'localhost' : name;
  if (!from || !/^https?:$/.test(from.protocol) || host(from.hostname) !== host(location.hostname)) {
    return;
  }
  for (const group of nav.querySelectorAll('a:not([href$=".json"])')) {
    group.search = location.search;
  }
  const link = document.createElement('a');
  link.href = `${from.origin}/`;
  link.textContent = '← Status';
  nav.prepend(link);
}

// oneRowForEachHook merges the path of a hook with the one that has the name of a handler, which may then be empty. The
// group's discovery comes last.
function oneRowForEachHook(spec) {
  spec.tags?.sort((a, b) => (a.name === 'Discovery') - (b.name === 'Discovery'));
  for (const [path, item] of Object.entries(spec.paths)) {
    const named = spec.paths[`${path}/{name}`];
    if (named) {
      named.post = {...item.post, parameters: named.post.parameters};
      delete spec.paths[path];
    }
  }
  for (const name of ['name', 'extension']) {
    const parameter = spec.components.parameters[name];
    if (parameter) {
      parameter.required = false;
      parameter.description += ' Without it, the path ends before the slash.';
    }
  }
}

// withoutEmptyName removes the segment of a name that was left empty, however it is written.
function withoutEmptyName(request) {
  request.url = request.url.replace(/\/(\{name\}|%7Bname%7D)?(?=$|\?)/i, '');
  return request;
}

// explained has the gateway explain a call instead of making it, if the reader asks for that.
function explained(request) {
  if (document.getElementById('explain').checked) {
    const url = new URL(request.url, location.href);
    url.pathname = `/explain${url.pathname}`;
    request.url = url.href;
  }
  return request;
}

// offerHandlers offers the handlers of a hook wherever one can be named, as soon as the hook is opened. The gateway names
// them when it explains the example of the hook, with the reasons why some are not called for it.
function offerHandlers(spec) {
  const lists = new Map(); // by path: the id and the length of a list, if the gateway has answered
  const ask = async (path, body) => {
    lists.set(path, null);
    try {
      const response = await fetch(`/explain${path.replace('/{name}', '')}`, {
        method: 'POST', headers: {'Content-Type': 'application/json'}, body,
      });
      const handlers = (await response.json()).handlers.filter(({kind}) => kind !== 'ExtensionConfig');
      const list = document.createElement('datalist');
      list.id = `handlers${path}`;
      list.append(...handlers.map(({name, excluded}) => new Option(
        excluded && excluded.by !== 'failure' ? `not for the example: ${excluded.by}` : '', name)));
      document.body.append(list);
      lists.set(path, {id: list.id, length: handlers.length});
      attach();
    } catch {
      // Names can be typed.
    }
  };
  // The elements may be used again for another hook.
  const attach = () => {
    for (const input of document.querySelectorAll('tr[data-param-name="name"] input')) {
      const block = input.closest('.opblock');
      const path = block.querySelector('[data-path]').dataset.path;
      const {tags, requestBody} = spec.paths[path].post;
      const {example} = requestBody.content['application/json'];
      const body = example ? JSON.stringify(example) : block.querySelector('textarea')?.value; // made of the schema
      if (body && !lists.has(path) && !tags.includes('Discovery')) {
        ask(path, body);
      }
      const list = lists.get(path);
      if (list && input.getAttribute('list') !== list.id) {
        input.setAttribute('list', list.id);
        input.placeholder = `empty, or one of ${list.length}`;
      } else if (!list) {
        input.removeAttribute('list');
      }
    }
  };
  const hooks = document.getElementById('hooks');
  new MutationObserver(attach).observe(hooks, {childList: true, subtree: true});
  hooks.addEventListener('focusin', attach); // the request may have been filled in since
  attach();
}
