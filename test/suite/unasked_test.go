// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/samples"
)

// TestUnaskedAnswers calls two ExtensionConfigs with the same host and the same CA in turns. When the connection of a call
// to the first one is used again, the server answers that call once more.
func TestUnaskedAnswers(t *testing.T) {
	a := newAuthority(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.certificate(t)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerTwice(c)
		}
	}()
	manifests := map[string]string{}
	for _, name := range []string{"once", "twice"} {
		manifests[name+".yaml"] = registration{name: name, url: "https://" + l.Addr().String() + "/" + name}.manifest(a)
	}
	g := startGateway(t, a, manifests)
	for range 8 {
		for _, name := range []string{"twice", "once"} {
			got := g.post(t, path("BeforeClusterCreate", "h."+name), samples.S())
			if name == "once" && (got.code != http.StatusOK || !strings.Contains(string(got.body), `"of once"`)) {
				t.Errorf("%s was answered %d: %s", name, got.code, got.body)
			}
		}
	}
}

// answerTwice serves a connection.
func answerTwice(c net.Conn) {
	defer func() { _ = c.Close() }()
	owed := ""
	for in := bufio.NewReader(c); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, owed)
		owed = ""
		_, _ = io.Copy(io.Discard, r.Body)
		name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		body := fmt.Sprintf(`{"status":"Success","retryAfterSeconds":0,"message":"of %s"}`, name)
		if strings.HasSuffix(rest, "/discovery") {
			body = `{"status":"Success","handlers":[{"name":"h","requestHook":` +
				`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterCreate"}}]}`
		}
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		_, _ = io.WriteString(c, answer)
		if name == "twice" && !strings.HasSuffix(rest, "/discovery") {
			owed = answer
		}
	}
}
