// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"

	"github.com/hookgate/hookgate/test/process"
)

// nginxConfig is a plain TLS proxy. Request bodies are passed on as they come: by default nginx would write each that
// is above 16 KB to a file first.
var nginxConfig = template.Must(template.New("nginx.conf").Parse(`daemon off;
{{- if .Root}}
user root;
{{- end}}
worker_processes 2;
pid {{.Dir}}/nginx.pid;
error_log stderr warn;
events { worker_connections 4096; }
http {
  access_log off;
  client_max_body_size 20m;
  client_body_buffer_size 128k;
  client_body_temp_path {{.Dir}}/client_body;
  proxy_temp_path {{.Dir}}/proxy;
  fastcgi_temp_path {{.Dir}}/fastcgi;
  uwsgi_temp_path {{.Dir}}/uwsgi;
  scgi_temp_path {{.Dir}}/scgi;
  keepalive_requests 1000000000;
  upstream extension {
    server {{.Upstream}};
    keepalive 1000;
    keepalive_requests 1000000000;
  }
  server {
    listen {{.Listen}} ssl http2;
    ssl_certificate {{.Cert}};
    ssl_certificate_key {{.Key}};
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {
      proxy_pass https://extension;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_request_buffering off;
      proxy_ssl_protocols TLSv1.2 TLSv1.3;
      proxy_ssl_trusted_certificate {{.CA}};
      proxy_ssl_verify on;
      proxy_ssl_name localhost;
      proxy_ssl_server_name on;
    }
  }
}
`))

// startNginx starts nginx in front of upstream and returns it and its address.
func startNginx(ctx context.Context, path, dir, upstream string, certs certificates) (*process.Process, string, error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, "", err
	}

	dir = filepath.Join(dir, "nginx")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", err
	}
	configFile := filepath.Join(dir, "nginx.conf")
	f, err := os.Create(configFile)
	if err != nil {
		return nil, "", err
	}
	err = nginxConfig.Execute(f, map[string]any{
		"Root": os.Geteuid() == 0, "Dir": dir, "Upstream": upstream, "Listen": listen,
		"Cert": certs.certFile(), "Key": certs.keyFile(), "CA": certs.caFile,
	})
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, "", fmt.Errorf("write nginx configuration: %w", err)
	}
	p, err := process.Start("nginx", exec.Command(path, "-p", dir, "-e", "stderr", "-c", configFile))
	return p, listen, err
}
