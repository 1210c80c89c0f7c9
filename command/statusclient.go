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
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/internal/network/tunnel"
)

// statusBytes is the size of the largest status that is read. 2,000 extensions with five handlers have less than 8 MiB.
const statusBytes = limits.StatusBytes

// statusValues and statusObjects are the number of values in the largest status that is read, and of objects among
// them, each of which takes 600 bytes, even if it is {}. 2,000 extensions with five handlers have 500,000 and 28,000.
const (
	statusValues  = limits.StatusValues
	statusObjects = limits.StatusObjects
)

// defaultDiagnostics is the diagnostics address of a gateway on this machine, by default. Only tests change it.
var defaultDiagnostics = "http://127.0.0.1:8443"

// statusOptions are the flags that say whose status to read.
type statusOptions struct {
	clientOptions
}

// addFlags adds the flags to cmd with their completion, and returns those of cmd, for more.
func (o *statusOptions) addFlags(cmd *cobra.Command) *pflag.FlagSet {
	f := cmd.Flags()
	f.StringVar(&o.server, "diagnostics", defaultDiagnostics,
		"diagnostics address of the gateway: http://HOST:PORT on this machine, https://HOST:PORT elsewhere")
	o.serverFlag = "--diagnostics"
	o.addCredentialFlags(f)
	o.gateway.addFlags(f)
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	completeFlags(cmd, map[string]completion{"context": completeContexts(&o.gateway.kube)})
	return f
}

// ask calls f with a client of the gateway that the flags name.
func (o *statusOptions) ask(cmd *cobra.Command, f func(c *statusClient) error) error {
	if o.timeout <= 0 {
		return usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	closeTunnel, err := o.reach(cmd)
	if err != nil {
		return err
	}
	defer closeTunnel()
	c, err := o.open()
	if err != nil {
		return err
	}
	defer c.close()
	return f(c)
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
	e, err := endpoint.Parse(o.server, endpoint.HTTP, endpoint.HTTPS)
	if err == nil && e.Prefix != "" {
		err = errors.New("must not have a path")
	}
	if err != nil {
		return nil, usagef("%s %q: %w; want http://HOST:PORT or https://HOST:PORT", o.flag(), redact.URL(o.server), err)
	}
	base := &url.URL{Scheme: e.Scheme, Host: e.Authority}
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
	transport := connect.NewTransport(config, true, 1)
	transport.DialContext = o.dial()
	return &statusClient{
		options: o, base: base, token: token,
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

func (c *statusClient) close() { c.http.CloseIdleConnections() }

// get returns the status of the gateway, and its JSON. If extension is not empty, it has that extension alone, and all
// that is known of it.
func (c *statusClient) get(ctx context.Context, extension string) (g *status.Gateway, body []byte, err error) {
	return c.about(ctx, "extension", extension)
}

// about returns the status of the gateway, and its JSON. If name is not empty, it has the extension, the rule, the
// Job or the chain of that name alone, and all that is known of it.
func (c *statusClient) about(ctx context.Context, kind, name string) (g *status.Gateway, body []byte, err error) {
	query := url.Values{}
	if name == "" {
		kind = ""
	} else {
		query.Set(kind, name)
	}
	if body, err = c.read(ctx, query, kind); err != nil {
		return nil, nil, err
	}
	g = &status.Gateway{}
	if err := json.Unmarshal(body, g); err != nil || g.Now.IsZero() {
		return nil, nil, fmt.Errorf("%s is no diagnostics address of a gateway: %s does not answer with a status",
			c.name(), status.Path)
	}
	return g, body, nil
}

// read returns the JSON of a status that is not larger than those that are read.
func (c *statusClient) read(ctx context.Context, query url.Values, kind string) ([]byte, error) {
	code, body, err := c.fetch(ctx, status.Path, query, statusBytes+1)
	switch {
	case err != nil:
		return nil, err
	case len(body) > statusBytes:
		return nil, fmt.Errorf("gateway %s: the status has more than %d MiB", c.name(), statusBytes>>20)
	case code != http.StatusOK:
		return nil, c.refusal(code, body, kind)
	}
	if n := jsonscan.Count(body); n.Values > statusValues || n.Objects > statusObjects {
		return nil, fmt.Errorf("gateway %s: the status has %d values and %d objects, more than are read",
			c.name(), n.Values, n.Objects)
	}
	return body, nil
}

// cluster returns what the gateway knows of a Cluster, and its JSON.
func (c *statusClient) cluster(ctx context.Context, cluster string) (found *status.Cluster, body []byte, err error) {
	if body, err = c.read(ctx, url.Values{clusterKind: {cluster}}, clusterKind); err != nil {
		return nil, nil, err
	}
	found = &status.Cluster{}
	if err := json.Unmarshal(body, found); err != nil || found.Namespace+"/"+found.Name != cluster {
		return nil, nil, errors.New(withHint(
			fmt.Sprintf("gateway %s does not say where the hooks of one Cluster go", c.name()),
			"Is it older than this program? The page of the Cluster, /clusters/NAMESPACE/CLUSTER, shows its handlers."))
	}
	return found, body, nil
}

// fetch returns the status code of what is at a path, and up to most bytes of it.
func (c *statusClient) fetch(ctx context.Context, path string, query url.Values, most int64) (int, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.timeout,
		fmt.Errorf("no answer within %s", c.options.timeout))
	defer cancel()
	response, err := c.do(ctx, http.MethodGet, path, query)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return 0, nil, c.explain(ctx, err)
	}
	return response.StatusCode, body, nil
}

// do sends a request without a body, and returns the answer when its header has come.
func (c *statusClient) do(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	target := *c.base
	target.Path, target.RawQuery = path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", userAgent())
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	return response, nil
}

func (c *statusClient) name() string { return c.options.name() }

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
		if c.options.tunnel != nil {
			hint += fmt.Sprintf(" As deploy/ installs it, they are ca.crt of the Secret hookgate-serving-cert in namespace %s.",
				c.options.tunnel.Pod().Namespace)
		}
	}
	if failed, ok := errors.AsType[*tunnel.Error](err); ok {
		return failed
	}
	return errors.New(withHint(fmt.Sprintf("gateway %s: %s", c.name(), err), hint))
}

// refusal returns the error of an answer that is no status. kind is that of the one object that was asked for, if any.
func (c *statusClient) refusal(code int, body []byte, kind string) error {
	hint := ""
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		allowed := "get the path " + status.Path
		if kind == "handler" {
			allowed = "post to the path " + recording.Path
		}
		hint = "Say --token-file FILE or --cert FILE and --key FILE: a token must be allowed to " + allowed + "."
	case http.StatusNotFound:
		switch kind {
		case "":
			hint = "Is this the diagnostics address of a gateway?"
		case clusterKind: // the text says what to do
		default:
			hint = fmt.Sprintf(`See "hookgate get %ss".`, kind)
		}
	}
	// Where a gateway is called instead of its diagnostics address, the text is in an answer of a hook.
	var answer struct{ Message string }
	if json.Unmarshal(body, &answer) == nil && answer.Message != "" {
		body = []byte(answer.Message)
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

// completeStatus completes names in the status of the gateway that the flags name.
func completeStatus(o *statusOptions, names func(g *status.Gateway) []string) completion {
	return complete(func(cmd *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		defer briefly(cmd)()
		o.timeout = completionTimeout
		var found []string
		_ = o.ask(cmd, func(c *statusClient) error { // a gateway that cannot be asked completes nothing
			g, _, err := c.get(cmd.Context(), "")
			if err == nil {
				found = names(g)
			}
			return err
		})
		return found
	})
}

// clusterKind is the parameter of the status that asks for a Cluster.
const clusterKind = "cluster"
