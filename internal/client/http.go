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

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/connect"
	"github.com/hookgate/hookgate/internal/limits"
)

// post sends a body as Cluster API does. It follows no redirect.
func (c *Client) post(ctx context.Context, h *catalog.Hook, handler string, body []byte) *Response {
	e := c.config.Endpoint
	u := &url.URL{Scheme: e.Scheme, Host: e.Authority, Path: e.Prefix + h.Path(handler)}
	if deadline, ok := ctx.Deadline(); ok {
		u.RawQuery = connect.TimeoutQuery(deadline, math.MaxInt64)
	}
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
	r := &Response{Status: "HTTP " + resp.Status, HTTPCode: resp.StatusCode, Header: resp.Header, Body: data}
	if r.HTTPCode != http.StatusOK {
		return r
	}
	r.decode(c, h)
	if r.Invalid != nil && ctx.Err() != nil {
		// A server that sees that this side has left may end its answer, and net/http may return it all the same.
		f := &connect.Failure{Kind: hook.BadResponse, Text: "answer is invalid", Cause: r.Invalid}
		return &Response{Header: resp.Header, Failure: c.failure(ctx, f)}
	}
	return r
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
