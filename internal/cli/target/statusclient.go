// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
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

// DefaultDiagnostics is the diagnostics address of a gateway on this machine, by default. Only tests change it.
var DefaultDiagnostics = "http://127.0.0.1:8443"

// StatusOptions are the flags that say whose status to read.
type StatusOptions struct {
	ClientOptions
}

// AddFlags adds the flags to cmd with their completion, and returns those of cmd, for more.
func (o *StatusOptions) AddFlags(cmd *cobra.Command) *pflag.FlagSet {
	f := cmd.Flags()
	f.StringVar(&o.Server, "diagnostics", DefaultDiagnostics,
		"diagnostics address of the gateway: http://HOST:PORT on this machine, https://HOST:PORT elsewhere")
	o.ServerFlag = "--diagnostics"
	o.AddCredentialFlags(f)
	o.Gateway.AddFlags(f)
	f.DurationVar(&o.Timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": CompleteContexts(&o.Gateway.Kube)})
	return f
}

// Ask calls f with a client of the gateway that the flags name. If it has several replicas, it says which one that is.
func (o *StatusOptions) Ask(cmd *cobra.Command, f func(c *StatusClient) error) error {
	return o.ask(cmd, func(c *StatusClient, others []string) error {
		if len(others) > 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "This is what %s knows; --gateway %s/POD queries another "+
				"replica: %s.\n",
				c.Name(), o.Tunnel.Pod().Namespace, strings.Join(others, ", "))
		}
		return f(c)
	})
}

// AskAll calls f with a client of each replica of the gateway that the flags name, one after the other. It says which
// one cannot be asked, and fails if none can.
func (o *StatusOptions) AskAll(cmd *cobra.Command, f func(c *StatusClient) error) error {
	return o.ask(cmd, func(c *StatusClient, others []string) error {
		err := f(c)
		asked, problems := err == nil, []error{err}
		for _, pod := range others {
			replica := *o
			replica.Gateway.Name = o.Tunnel.Pod().Namespace + "/" + pod
			err := replica.ask(cmd, func(c *StatusClient, _ []string) error { return f(c) })
			asked, problems = asked || err == nil, append(problems, err)
		}
		if !asked {
			return problems[0]
		}
		if err := errors.Join(problems...); err != nil {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "A replica is left out: %s\n", err)
		}
		return nil
	})
}

// ask calls f with a client of the gateway that the flags name, and the names of its other replicas.
func (o *StatusOptions) ask(cmd *cobra.Command, f func(c *StatusClient, others []string) error) error {
	if o.Timeout <= 0 {
		return cmdline.Usagef("--timeout: want more than 0, got %s", o.Timeout)
	}
	closeTunnel, err := o.reach(cmd)
	if err != nil {
		return err
	}
	defer closeTunnel()
	c, err := o.Open()
	if err != nil {
		return err
	}
	defer c.Close()
	var others []string
	if o.Tunnel != nil {
		others = o.Tunnel.Others()
	}
	return f(c, others)
}

// StatusClient reads the status of a gateway.
type StatusClient struct {
	options *StatusOptions
	Base    *url.URL
	Token   string
	HTTP    *http.Client
}

// Open returns the client of the flags. It does not connect yet.
func (o *StatusOptions) Open() (*StatusClient, error) {
	e, err := endpoint.Parse(o.Server, endpoint.HTTP, endpoint.HTTPS)
	if err == nil && e.Prefix != "" {
		err = errors.New("must not have a path")
	}
	if err != nil {
		return nil, cmdline.Usagef("%s %q: %w; want http://HOST:PORT or "+
			"https://HOST:PORT", o.flag(), redact.URL(o.Server), err)
	}
	base := &url.URL{Scheme: e.Scheme, Host: e.Authority}
	config, err := o.TLS()
	if err != nil {
		return nil, err
	}
	token, err := o.Bearer()
	if err != nil {
		return nil, err
	}
	if base.Scheme == "http" && !cmdline.IsLoopback(base.Host) && (token != "" || o.CA != "" || o.cert != "") {
		return nil, cmdline.Usagef("--ca, --cert and --token need TLS: want %s https://%s", o.flag(), base.Host)
	}
	return o.client(base, token, config), nil
}

func (o *StatusOptions) client(base *url.URL, token string, config *tls.Config) *StatusClient {
	asViewer := o.Tunnel != nil && base.Scheme == "https" && token == "" && o.cert == ""
	if asViewer && o.CA == "" {
		config.InsecureSkipVerify = true // see viewer
	}
	transport := connect.NewTransport(config, true, 1)
	transport.DialContext = o.dial()
	var through http.RoundTripper = transport
	if asViewer {
		through = &viewer{Transport: transport, tunnel: o.Tunnel}
	}
	return &StatusClient{
		options: o, Base: base, Token: token,
		HTTP: &http.Client{
			Transport:     through,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close closes idle connections.
func (c *StatusClient) Close() { c.HTTP.CloseIdleConnections() }

// Get returns the status of the gateway, and its JSON. If extension is not empty, it has that extension alone, and all
// that is known of it.
func (c *StatusClient) Get(ctx context.Context, extension string) (g *status.Gateway, body []byte, err error) {
	return c.About(ctx, "extension", extension)
}

// About returns the status of the gateway, and its JSON. If name is not empty, it has the extension, the rule, the
// Job or the chain of that name alone, and all that is known of it.
func (c *StatusClient) About(ctx context.Context, kind, name string) (g *status.Gateway, body []byte, err error) {
	query := url.Values{}
	if name == "" {
		kind = ""
	} else {
		query.Set(kind, name)
	}
	return c.status(ctx, query, kind)
}

// Released returns the status of the gateway with the last answers that let Clusters go on.
func (c *StatusClient) Released(ctx context.Context) (*status.Gateway, error) {
	g, _, err := c.status(ctx, url.Values{status.ReleasedQuery: {""}}, "")
	return g, err
}

func (c *StatusClient) status(
	ctx context.Context, query url.Values, kind string,
) (g *status.Gateway, body []byte, err error) {
	if body, err = c.read(ctx, query, kind); err != nil {
		return nil, nil, err
	}
	g = &status.Gateway{}
	if err := json.Unmarshal(body, g); err != nil || g.Now.IsZero() {
		return nil, nil, fmt.Errorf("%s is not the diagnostics address of a gateway: %s does not answer with a status",
			c.Name(), status.Path)
	}
	return g, body, nil
}

// read returns the JSON of a status that is not larger than those that are read.
func (c *StatusClient) read(ctx context.Context, query url.Values, kind string) ([]byte, error) {
	code, body, err := c.Fetch(ctx, status.Path, query, statusBytes+1)
	switch {
	case err != nil:
		return nil, err
	case len(body) > statusBytes:
		return nil, fmt.Errorf("gateway %s: the status has more than %d MiB", c.Name(), statusBytes>>20)
	case code != http.StatusOK:
		return nil, c.Refusal(code, body, kind)
	}
	if n := jsonscan.Count(body); n.Values > statusValues || n.Objects > statusObjects {
		return nil, fmt.Errorf("gateway %s: the status has %d values and %d objects, which is more than hookgate reads",
			c.Name(), n.Values, n.Objects)
	}
	return body, nil
}

// Cluster returns what the gateway knows of a Cluster, and its JSON.
func (c *StatusClient) Cluster(ctx context.Context, cluster string) (found *status.Cluster, body []byte, err error) {
	if body, err = c.read(ctx, url.Values{clusterKind: {cluster}}, clusterKind); err != nil {
		return nil, nil, err
	}
	found = &status.Cluster{}
	if err := json.Unmarshal(body, found); err != nil || found.Namespace+"/"+found.Name != cluster {
		return nil, nil, errors.New(WithHint(
			fmt.Sprintf("gateway %s does not report which handlers answer the hooks of a Cluster", c.Name()),
			"Is it older than this program? The page of the Cluster, /clusters/NAMESPACE/CLUSTER, shows its handlers."))
	}
	return found, body, nil
}

// Fetch returns the status code of what is at a path, and up to most bytes of it.
func (c *StatusClient) Fetch(ctx context.Context, path string, query url.Values, most int64) (int, []byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeout,
		fmt.Errorf("no answer within %s", c.options.Timeout))
	defer cancel()
	response, err := c.Do(ctx, http.MethodGet, path, query)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return 0, nil, c.Explain(ctx, err)
	}
	return response.StatusCode, body, nil
}

// Do sends a request without a body, and returns the answer when its header has come.
func (c *StatusClient) Do(ctx context.Context, method, path string, query url.Values) (*http.Response, error) {
	target := *c.Base
	target.Path, target.RawQuery = path, query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", cmdline.UserAgent())
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, c.Explain(ctx, err)
	}
	return response, nil
}

// Name returns the name of the gateway in messages.
func (c *StatusClient) Name() string { return c.options.name() }

// Explain returns the error of a gateway that could not be asked, and what may help.
func (c *StatusClient) Explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" { // the name has the address already
		err = failed.Err
		if cause, ok := errors.AsType[*os.SyscallError](err); ok {
			err = cause.Err
		}
	}
	hint := "Is the gateway running, and is this its --diagnostics-address? " + c.options.flag() + " chooses another one."
	if c.options.Tunnel == nil {
		hint += " For a gateway in a cluster, use --context or --gateway."
	}
	if c.Base.Scheme == "https" && strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return errors.New(WithHint(fmt.Sprintf("gateway %s: the server has no TLS", c.Name()),
			fmt.Sprintf("Without TLS, use %s http://%s.", c.options.flag(), c.Base.Host)))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		hint = "Use --ca FILE with the CA certificates to verify the gateway with."
		if c.options.Tunnel != nil {
			hint += fmt.Sprintf(" If you installed the gateway from deploy/, the CA certificates are in ca.crt of "+
				"the Secret hookgate-serving-cert in namespace %s.", c.options.Tunnel.Pod().Namespace)
		}
	}
	if failed, ok := errors.AsType[*tunnel.Error](err); ok {
		return failed
	}
	return errors.New(WithHint(fmt.Sprintf("gateway %s: %s", c.Name(), err), hint))
}

// Refusal returns the error of an answer that is no status. kind is that of the object which was
// asked for, if it was one.
func (c *StatusClient) Refusal(code int, body []byte, kind string) error {
	hint := ""
	switch code {
	case http.StatusUnauthorized, http.StatusForbidden:
		allowed := "get the path " + status.Path
		if kind == "handler" {
			allowed = "post to the path " + recording.Path
		}
		hint = "Use --token-file FILE or --cert FILE and --key FILE: a token must be allowed to " + allowed + "."
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
	what := excerptOf(body)
	switch {
	case what == "":
		what = "the answer has no body"
	case code == http.StatusBadRequest && c.Base.Scheme == "http" && strings.Contains(what, "HTTP request to an HTTPS"):
		hint = fmt.Sprintf("With TLS, use %s https://%s. The address for hooks (--http-address of the gateway) is not "+
			"its diagnostics address.", c.options.flag(), c.Base.Host)
	}
	return errors.New(WithHint(fmt.Sprintf("gateway %s: HTTP %d: %s", c.Name(), code, what), hint))
}

// Every calls f at once, and then once in each interval until ctx is done, which is no error.
func Every(ctx context.Context, interval time.Duration, f func() error) error {
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

// CompleteStatus completes names in the status of the gateway that the flags name.
func CompleteStatus(o *StatusOptions, names func(g *status.Gateway) []string) cmdline.Completion {
	return cmdline.Complete(func(cmd *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		defer cmdline.Briefly(cmd)()
		o.Timeout = cmdline.CompletionTimeout
		var found []string
		_ = o.Ask(cmd, func(c *StatusClient) error { // a gateway that cannot be asked completes nothing
			g, _, err := c.Get(cmd.Context(), "")
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
