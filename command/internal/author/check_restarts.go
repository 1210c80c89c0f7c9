// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

const (
	// lookEvery is how often an extension that runs is asked whether its handlers have changed, and seekEvery how often
	// one that has gone away is called.
	lookEvery = time.Second
	seekEvery = 100 * time.Millisecond
)

// restarts notices that an extension has restarted: its connection ends, it cannot be reached for a while, or its
// answer to Discovery changes. One goroutine uses it.
type restarts struct {
	config    client.Config
	discovery *catalog.Hook
	request   proto.Message

	client *client.Client
	ended  chan struct{} // has a value once the connection has ended
	answer string        // to Discovery, by which changes are seen
	stable bool          // two answers were equal; else answers differ anyway
	gone   bool          // the extension did not answer
	lasts  bool          // the connection outlives an answer: some servers end each
}

// newRestarts returns what notices restarts of the extension of the flags. It does not connect yet.
func (o *checkOptions) newRestarts(hooks *catalog.Catalog) (*restarts, error) {
	e, err := endpoint.Parse(o.Server, endpoint.HTTPS, endpoint.HTTP, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix)
	if err != nil {
		return nil, cmdline.Usagef("URL %w", err)
	}
	secure, err := o.TLS()
	if err != nil {
		return nil, err
	}
	token, err := o.Bearer()
	if err != nil {
		return nil, err
	}
	discovery, _ := hooks.ByName(hook.Discovery)
	return &restarts{
		config: client.Config{
			Endpoint: e, TLS: secure, Codec: codec.New(hooks), UserAgent: cmdline.UserAgent(), Idle: 1, Token: token,
		},
		discovery: discovery, request: discovery.Request.New().Interface(),
	}, nil
}

// begin connects, and notes how the extension is: wait returns when it is another one.
func (r *restarts) begin(ctx context.Context) {
	r.connect()
	first, answers := r.ask(ctx)
	second, again := r.ask(ctx)
	r.answer, r.stable = first, first == second
	r.gone, r.lasts = ctx.Err() == nil && (!answers || !again), !r.hasEnded()
}

// wait returns once the extension has restarted since begin and answers, and says how that was noticed. It calls down
// once if the extension does not answer. It also returns when ctx is done.
func (r *restarts) wait(ctx context.Context, down func()) (why string) {
	for told := false; ; {
		var ended <-chan struct{}
		pause := lookEvery
		if r.gone {
			pause = seekEvery
			r.connect() // the client would wait before it dials again
		} else if r.lasts {
			ended = r.ended
		}
		select {
		case <-ctx.Done():
			return ""
		case <-ended:
			r.gone = true
			continue
		case <-time.After(pause):
		}
		switch now, answers := r.ask(ctx); {
		case ctx.Err() != nil:
			return ""
		case !answers:
			if r.gone = true; !told {
				told = true
				down()
			}
		case r.gone:
			return "the extension has restarted"
		case r.stable && now != r.answer:
			return "the answer to Discovery has changed"
		}
	}
}

// await returns once the extension answers, or fails in another way than one that is just starting, or after patience.
func (r *restarts) await(ctx context.Context, patience time.Duration) {
	if e := r.config.Endpoint; !e.HasTLS() && !e.IsLocal() {
		return // checks refuse to call it
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r.connect() // the client would wait before it dials again
		if x := r.discover(ctx); x == nil || x.Failure == nil || !x.Failure.Temporary {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(seekEvery):
		}
	}
}

// ask returns the answer to Discovery, whatever it is, and whether there is one.
func (r *restarts) ask(ctx context.Context) (answer string, ok bool) {
	x := r.discover(ctx)
	if x == nil {
		return "", false
	}
	return x.Status + string(x.Body), x.Failure == nil
}

// discover calls Discovery; without a client, it returns nil.
func (r *restarts) discover(ctx context.Context) *client.Response {
	if r.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	return r.client.Call(ctx, r.discovery, "", r.request)
}

// hasEnded reports whether the connection has ended, or another one before it.
func (r *restarts) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// connect replaces the connection.
func (r *restarts) connect() {
	r.close()
	ended := make(chan struct{}, 1)
	r.ended = ended // not that of connections that are being closed
	config := r.config
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &watchedConn{c, ended}, nil
	}
	r.client, _ = client.New(config) // ask says that there is none
}

func (r *restarts) close() {
	if r.client != nil {
		r.client.Close()
	}
}

// watchedConn says when it has ended. The libraries read from idle connections, too.
type watchedConn struct {
	net.Conn
	ended chan<- struct{}
}

// Read implements net.Conn.
func (c *watchedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.end()
	}
	return n, err
}

// Close implements net.Conn.
func (c *watchedConn) Close() error {
	c.end()
	return c.Conn.Close()
}

func (c *watchedConn) end() {
	select {
	case c.ended <- struct{}{}:
	default:
	}
}
