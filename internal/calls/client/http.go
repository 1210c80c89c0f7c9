// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// post sends a body as Cluster API does. It follows no redirect.
func (c *Client) post(ctx context.Context, h *catalog.Hook, handler string, body []byte) *Response {
	query := ""
	if deadline, ok := ctx.Deadline(); ok {
		query = connect.TimeoutQuery(deadline, math.MaxInt64)
	}
	r := c.send(ctx, h.Path(handler), query, body)
	if r.Failure != nil || r.HTTPCode != http.StatusOK {
		return r
	}
	r.decode(c, h)
	if r.Invalid != nil && ctx.Err() != nil {
		// A server that sees that this side has left may end its answer, and net/http may return it all the same.
		f := &connect.Failure{Kind: hook.BadResponse, Text: "answer is invalid", Cause: r.Invalid}
		return &Response{Header: r.Header, Failure: c.failure(ctx, f)}
	}
	return r
}

// Explain asks a gateway over HTTP to explain a call instead of making it, at the path of the hook behind a prefix.
// With call, the gateway makes it, too. The response has a Body only.
func (c *Client) Explain(
	ctx context.Context, prefix string, h *catalog.Hook, handler string, req proto.Message, call bool,
) *Response {
	body, err := c.config.Codec.Append(nil, req)
	if err != nil {
		return &Response{Failure: &connect.Failure{
			Kind: hook.InvalidRequest, Text: "write request: " + err.Error(), Cause: err,
		}}
	}
	query := ""
	if call {
		query = "call=true"
	}
	return c.send(ctx, prefix+h.Path(handler), query, body)
}

// send sends a body to a path, and reads the answer.
func (c *Client) send(ctx context.Context, path, query string, body []byte) *Response {
	e := c.config.Endpoint
	u := &url.URL{Scheme: e.Scheme, Host: e.Authority, Path: e.Prefix + path, RawQuery: query}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return &Response{Failure: &connect.Failure{
			Kind: hook.InvalidRequest, Text: "write request: " + err.Error(), Cause: err,
		}}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.config.UserAgent)
	if c.config.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.config.Token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &Response{Failure: c.failure(ctx, connect.Classify(err))}
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, limits.BodyBytes+1))
	if err != nil {
		f := &connect.Failure{Kind: hook.BadResponse, Reason: connect.Broken, Text: "answer ended early", Cause: err}
		return &Response{Header: resp.Header, Failure: c.failure(ctx, f)}
	}
	return &Response{Status: "HTTP " + resp.Status, HTTPCode: resp.StatusCode, Header: resp.Header, Body: data}
}

// decode reads the answer of a hook.
func (r *Response) decode(c *Client, h *catalog.Hook) {
	m := h.Response.New().Interface()
	if len(r.Body) > limits.BodyBytes {
		r.Invalid = errTooLarge
	} else if err := c.config.Codec.Decode(r.Body, m); err != nil {
		r.Invalid = err
	} else {
		r.Message = m
	}
}

// errTooLarge reports an answer that is larger than one may be.
var errTooLarge = fmt.Errorf("larger than %d MiB", limits.BodyBytes>>20)
