// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
)

// restTransport posts requests as Cluster API does.
type restTransport struct {
	endpoint *endpoint
	codec    *codec.Codec
	client   http.Client
}

var _ transport = (*restTransport)(nil)

func newRESTTransport(e *endpoint, config *tls.Config, c *codec.Codec) *restTransport {
	return &restTransport{endpoint: e, codec: c, client: http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			TLSClientConfig:     config,
			ForceAttemptHTTP2:   true,
			DisableCompression:  true,
			MaxIdleConnsPerHost: concurrentCalls,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (t *restTransport) close() { t.client.CloseIdleConnections() }

func (t *restTransport) call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *exchange {
	body, err := t.codec.Append(nil, req)
	if err != nil {
		return &exchange{handler: handler, outcome: lost, err: err, text: err.Error()}
	}
	return t.send(ctx, h, handler, body)
}

func (t *restTransport) send(ctx context.Context, h *catalog.Hook, handler string, body []byte) *exchange {
	path := h.Path(url.PathEscape(handler))
	x := &exchange{handler: handler, sent: fmt.Sprintf("POST %s, %s: %s", path, size(len(body)), excerpt(body))}
	scheme := "http://"
	if t.endpoint.secure {
		scheme = "https://"
	}
	at := scheme + t.endpoint.address + t.endpoint.prefix + path
	if deadline, ok := ctx.Deadline(); ok {
		at += "?timeout=" + max(time.Until(deadline), time.Millisecond).Round(time.Millisecond).String()
	}
	start := time.Now()
	defer func() { x.took = time.Since(start) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		x.outcome, x.text, x.err = lost, err.Error(), err
		return x
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := t.client.Do(request)
	if err != nil {
		x.broken(ctx, err)
		return x
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err != nil {
		x.broken(ctx, err)
		return x
	}
	x.code, x.content = "HTTP "+response.Status, response.Header.Get("Content-Type")
	switch code := response.StatusCode; {
	case code == http.StatusOK:
		x.body = data
		x.message, x.wrong = t.decode(h, data)
		x.decoded()
	case code >= 400 && code < 500:
		x.outcome, x.text = refused, string(data)
	default:
		x.outcome, x.text = failed, string(data)
	}
	return x
}

func (t *restTransport) decode(h *catalog.Hook, data []byte) (proto.Message, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the answer is larger than %s", size(maxBytes))
	}
	m := h.Response.New().Interface()
	if err := t.codec.Decode(data, m); err != nil {
		return nil, err
	}
	return m, nil
}

// broken sets why nothing came.
func (x *exchange) broken(ctx context.Context, err error) {
	x.outcome, x.err, x.text = lost, err, innermost(err).Error()
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		x.outcome = late
	}
}

// innermost returns the first cause, which has no addresses and ports in its text.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
