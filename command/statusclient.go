// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/connect"
	"github.com/hookgate/hookgate/internal/status"
	"github.com/hookgate/hookgate/internal/text"
)

// statusBytes is the size of the largest status that is read. 2,000 extensions with five handlers have less than 8 MiB.
const statusBytes = 64 << 20

// defaultDiagnostics is the diagnostics address of a gateway on this machine, by default.
const defaultDiagnostics = "http://127.0.0.1:8443"

// statusOptions are the flags that say whose status to read.
type statusOptions struct {
	clientOptions
}

func (o *statusOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.server, "diagnostics", defaultDiagnostics,
		"diagnostics address of the gateway: http://HOST:PORT on this machine, https://HOST:PORT elsewhere")
	o.serverFlag = "--diagnostics"
	o.addCredentialFlags(f)
}

// statusClient reads the status of a gateway.
type statusClient struct {
	options *statusOptions
	base    *url.URL
	token   string
	http    *http.Client
}

// open returns the client of the flags. It does not connect yet.
func (o *statusOptions) open() (*statusClient, error) {
	base, err := url.Parse(o.server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" ||
		strings.Trim(base.Path, "/") != "" {
		return nil, usagef("%s %q: want http://HOST:PORT or https://HOST:PORT", o.flag(), text.URL(o.server))
	}
	config, err := o.tls()
	if err != nil {
		return nil, err
	}
	token, err := o.bearer()
	if err != nil {
		return nil, err
	}
	if base.Scheme == "http" && !isLoopback(base.Host) && (token != "" || o.ca != "" || o.cert != "") {
		return nil, usagef("--ca, --cert and --token need TLS: want %s https://%s", o.flag(), base.Host)
	}
	return o.client(base, token, config), nil
}

func (o *statusOptions) client(base *url.URL, token string, config *tls.Config) *statusClient {
	return &statusClient{
		options: o, base: base, token: token,
		http: &http.Client{
			Transport:     connect.NewTransport(config, true, 1),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (c *statusClient) close() { c.http.CloseIdleConnections() }

// get returns the status of the gateway, and its JSON. If extension is not empty, it has that extension alone, and all
// that is known of it.
func (c *statusClient) get(ctx context.Context, extension string) (g *status.Gateway, body []byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.timeout,
		fmt.Errorf("no answer within %s", c.options.timeout))
	defer cancel()
	target := *c.base
	target.Path = status.Path
	if extension != "" {
		target.RawQuery = url.Values{"extension": {extension}}.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("User-Agent", userAgent())
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, nil, c.explain(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, statusBytes+1))
	switch {
	case err != nil:
		return nil, nil, c.explain(ctx, err)
	case len(body) > statusBytes:
		return nil, nil, fmt.Errorf("gateway %s: the status has more than %d MiB", c.name(), statusBytes>>20)
	case response.StatusCode != http.StatusOK:
		return nil, nil, c.refusal(response.StatusCode, body, extension)
	}
	g = &status.Gateway{}
	if err := json.Unmarshal(body, g); err != nil || g.Now.IsZero() {
		return nil, nil, fmt.Errorf("%s is no diagnostics address of a gateway: %s does not answer with a status",
			c.name(), status.Path)
	}
	return g, body, nil
}

func (c *statusClient) name() string { return strings.TrimSuffix(text.URL(c.base.String()), "/") }

// explain returns the error of a gateway that could not be asked, and what may help.
func (c *statusClient) explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	hint := "Is the gateway running, and is this its --diagnostics-address? " + c.options.flag() + " names another one."
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		hint = "Say --ca FILE, with the certificates to trust the gateway by."
	}
	return errors.New(withHint(fmt.Sprintf("gateway %s: %s", c.name(), err), hint))
}

// refusal returns the error of an answer that is no status.
func (c *statusClient) refusal(code int, body []byte, extension string) error {
	hint := ""
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = "Say --token-file FILE or --cert FILE and --key FILE: a token must be allowed to get the path " +
			status.Path + "."
	case http.StatusNotFound:
		if extension == "" {
			hint = "Is this the diagnostics address of a gateway?"
		} else {
			hint = `See "hookgate get extensions".`
		}
	}
	return errors.New(withHint(fmt.Sprintf("gateway %s: HTTP %d: %s", c.name(), code, excerptOf(body)), hint))
}

// every calls f at once, and then once in each interval until ctx is done, which is no error.
func every(ctx context.Context, interval time.Duration, f func() error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := f(); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}
