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
  const discovery = oneRowForEachHook(spec);
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
  offerHandlers(discovery);
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

// oneRowForEachHook merges the path of a hook with the one that has the name of a handler, which may then be empty, and
// returns the path of the group's discovery, which comes last.
function oneRowForEachHook(spec) {
  let discovery = '';
  spec.tags?.sort((a, b) => (a.name === 'Discovery') - (b.name === 'Discovery'));
  for (const [path, item] of Object.entries(spec.paths)) {
    if (item.post.tags.includes('Discovery') && !path.endsWith('/{name}')) {
      discovery = path;
    }
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
  return discovery;
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

// offerHandlers asks the gateway for the handlers, and offers those of a hook wherever one can be named.
async function offerHandlers(discovery) {
  const offered = new Map(); // by hook, as its path has it
  try {
    const response = await fetch(discovery, {method: 'POST', body: '{}', headers: {'Content-Type': 'application/json'}});
    for (const {name, requestHook} of (await response.json()).handlers ?? []) {
      const hook = `/${requestHook.apiVersion}/${requestHook.hook.toLowerCase()}/{name}`;
      offered.set(hook, [...(offered.get(hook) ?? []), name]);
    }
  } catch {
    return; // names can be typed
  }
  const lists = new Map();
  for (const [hook, names] of offered) {
    const list = document.createElement('datalist');
    list.id = `handlers-${lists.size}`;
    list.append(...names.map((name) => new Option(name, name)));
    document.body.append(list);
    lists.set(hook, list.id);
  }
  // The elements may be used again for another hook.
  const attach = () => {
    for (const input of document.querySelectorAll('tr[data-param-name="name"] input')) {
      const id = lists.get(input.closest('.opblock').querySelector('[data-path]').dataset.path);
      if (id && input.getAttribute('list') !== id) {
        input.setAttribute('list', id);
      } else if (!id) {
        input.removeAttribute('list');
      }
    }
  };
  new MutationObserver(attach).observe(document.getElementById('hooks'), {childList: true, subtree: true});
  attach();
}
