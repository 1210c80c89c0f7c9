// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

SwaggerUIBundle({
  url: 'hooks.json',
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
});
