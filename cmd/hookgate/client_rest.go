// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/gateway"
)

// restClient calls hooks as Cluster API does.
type restClient struct {
	target  target
	options *clientOptions
	codec   *codec.Codec
	http    *http.Client
}

var _ client = (*restClient)(nil)

func newRESTClient(t target, config *tls.Config, c *codec.Codec, o *clientOptions) *restClient {
	return &restClient{target: t, options: o, codec: c, http: &http.Client{
		Transport: &http.Transport{
			Proxy:              http.ProxyFromEnvironment,
			TLSClientConfig:    config,
			ForceAttemptHTTP2:  true,
			DisableCompression: true, // -o json is the answer itself
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (c *restClient) close() error {
	c.http.CloseIdleConnections()
	return nil
}

func (c *restClient) call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) (*answer, error) {
	body, err := c.codec.Append(nil, req)
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.timeout)
	defer cancel()
	at := "https://" + c.target.host + c.target.prefix + h.Path(url.PathEscape(handler)) + "?timeout=" + c.options.timeout.String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", userAgent())
	response, err := c.http.Do(request)
	if err != nil {
		return nil, connectionError(err, c.target, c.options)
	}
	defer func() { _ = response.Body.Close() }()
	c.options.warn(response.Header.Values(gateway.WarningHeader))
	data, err := io.ReadAll(io.LimitReader(response.Body, gateway.MaxBodyBytes+1))
	if err != nil {
		return nil, connectionError(fmt.Errorf("read answer: %w", err), c.target, c.options)
	}
	if response.StatusCode != http.StatusOK {
		return nil, restError(response, data, handler)
	}
	bad := func(what string) error {
		return &callError{status: "HTTP " + response.Status, message: what, callID: response.Header.Get(gateway.CallIDHeader)}
	}
	if len(data) > gateway.MaxBodyBytes {
		return nil, bad(fmt.Sprintf("the answer is larger than the %d MiB that one may have", gateway.MaxBodyBytes>>20))
	}
	message := h.Response.New().Interface()
	if err := c.codec.Decode(data, message); err != nil {
		return nil, bad(fmt.Sprintf("the answer is no %s: %s", message.ProtoReflect().Descriptor().Name(), err))
	}
	return &answer{message: message, body: data, callID: response.Header.Get(gateway.CallIDHeader)}, nil
}

// restError reads an answer that is not 200. A gateway's has the hook's message; others have whatever they have.
func restError(response *http.Response, data []byte, handler string) *callError {
	e := &callError{
		status: "HTTP " + response.Status,
		kind:   response.Header.Get(gateway.ErrorKindHeader),
		callID: response.Header.Get(gateway.CallIDHeader),
	}
	var body struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(data, &body) == nil && body.Message != "":
		e.message = body.Message
	case strings.HasPrefix(response.Header.Get("Content-Type"), "application/grpc"):
		e.message = "this is a server of gRPC"
		e.hint = "Call it with --server grpcs://" + response.Request.URL.Host + "."
	case len(bytes.TrimSpace(data)) == 0:
		e.message = "the answer has no body"
	default:
		e.message = "the body is " + excerptOf(data)
	}
	switch {
	case e.kind != "" || e.hint != "":
	case response.StatusCode == http.StatusNotFound && handler == "":
		e.hint = "The answer is not a gateway's. If this is an extension, it wants --handler: see \"hookgate get handlers\"."
	default:
		e.hint = "The answer is not a gateway's. Is --server right?"
	}
	return e
}

// excerptOf returns the beginning of a body for a message, on one line.
func excerptOf(data []byte) string {
	const most = 200
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "?")), " ")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}
