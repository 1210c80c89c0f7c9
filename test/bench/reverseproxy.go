// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

// reverseProxy is the least that Go's standard library needs for a proxy: TLS both sides, HTTP/1.1 south with as many
// kept connections as there are calls.
func reverseProxy(upstream, caFile string) (http.Handler, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	caPEM, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := clientTLS(caPEM)
	if err != nil {
		return nil, err
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: &http.Transport{
			TLSClientConfig:     tlsConfig,
			Protocols:           &protocols,
			MaxIdleConnsPerHost: maxCallers,
		},
	}, nil
}
