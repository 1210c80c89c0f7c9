// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/registry"
)

// answersTwice returns what serves a connection whose requests for /twice have a second answer, at some moment: together
// with the first one, behind it, or when the next request comes.
func answersTwice(moment string, wrote chan<- struct{}) func(net.Conn) {
	answer := func(says string) string {
		text := strings.Replace(success, "fine", says, 1)
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	}
	return func(c net.Conn) {
		owed := ""
		for in := bufio.NewReader(c); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, owed)
			owed = ""
			_, _ = io.Copy(io.Discard, r.Body)
			if !strings.HasPrefix(r.URL.Path, "/twice/") {
				_, _ = io.WriteString(c, answer("once"))
				continue
			}
			first, second := answer("first"), answer("second")
			switch moment {
			case "together":
				_, _ = io.WriteString(c, first+second)
			case "behind":
				_, _ = io.WriteString(c, first)
				_, _ = io.WriteString(c, second)
			case "later":
				_, _ = io.WriteString(c, first)
				owed = second
			}
			wrote <- struct{}{}
		}
	}
}

// A second answer, whenever it comes, is the answer to no request of another ExtensionConfig, although both lead to the
// same host. Nor does one that has come answer the next request of its own.
func TestUnaskedAnswersStayWithTheirExtensionConfig(t *testing.T) {
	for _, moment := range []string{"together", "behind", "later"} {
		t.Run(moment, func(t *testing.T) {
			const rounds = 8
			wrote := make(chan struct{}, 2*rounds)
			cc := rawServer(t, newAuthority(t), answersTwice(moment, wrote))
			r := newREST(t, Config{})
			ccs := map[string]registry.ClientConfig{}
			for _, name := range []string{"once", "twice"} {
				of := cc
				of.Owner, of.URL = name, cc.URL+"/"+name
				ccs[name] = of
			}
			for range rounds {
				mustCall(t, r, ccs["twice"])
				<-wrote
				if got := mustCall(t, r, ccs["once"]).GetMessage(); got != "once" {
					t.Errorf("another ExtensionConfig was answered %q", got)
				}
				if moment == "later" {
					continue // which no client can tell from the answer to its next request
				}
				awaitNoneAlive(t, r, ccs["twice"])
				if got := mustCall(t, r, ccs["twice"]).GetMessage(); got != "first" {
					t.Errorf("its own next call was answered %q", got)
				}
				<-wrote
			}
		})
	}
}

// awaitNoneAlive waits until no idle connection can be used again.
func awaitNoneAlive(t testing.TB, r *REST, cc registry.ClientConfig) {
	t.Helper()
	rt, err := r.routes.get(cc)
	if err != nil {
		t.Fatal(err)
	}
	p := rt.host.acquire(r.now())
	defer p.release()
	c := p.http1.takeIdle()
	if c == nil {
		return // it was closed
	}
	defer p.http1.put(c)
	for deadline := time.Now().Add(patience); c.isAlive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection is still alive")
		}
	}
}
