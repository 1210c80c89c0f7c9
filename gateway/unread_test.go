// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/test/process"
)

// unreadCaller is a host that makes a call and reads the answer as badly as the test says.
type unreadCaller struct {
	host       string
	rest, grpc string
	trust      *tls.Config
}

// dial connects from the host, with a small buffer for what comes.
func (u unreadCaller) dial(t *testing.T, address, protocol string) *tls.Conn {
	t.Helper()
	raw, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(u.host)}}).Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	_ = raw.(*net.TCPConn).SetReadBuffer(4 << 10)
	config := u.trust.Clone()
	config.ServerName = "localhost"
	config.NextProtos = []string{protocol}
	return tls.Client(raw, config)
}

// overHTTP1 makes a call whose answer read gets, over HTTP/1.1.
func (u unreadCaller) overHTTP1(t *testing.T, read func(io.Reader)) {
	c := u.dial(t, u.rest, "http/1.1")
	_, err := fmt.Fprintf(c, "POST %s/v.acme HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", createPath, len(createBody), createBody)
	if err != nil {
		t.Error(err)
	}
	go read(c)
}

// frames makes a call over HTTP/2 with so much window, of the connection and of each call. more is called with what can
// open more of it, and read gets what comes.
func (u unreadCaller) frames(t *testing.T, address string, header [][2]string, body []byte, window uint32, read func(io.Reader), more func(*http2.Framer)) {
	c := u.dial(t, address, "h2")
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Error(err)
	}
	framer := http2.NewFramer(c, c)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	_ = framer.WriteWindowUpdate(0, 1<<30)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range header {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
	if err := framer.WriteData(1, true, body); err != nil {
		t.Error(err)
	}
	go read(c)
	go more(framer)
}

func (u unreadCaller) overHTTP2(t *testing.T, window uint32, read func(io.Reader), more func(*http2.Framer)) {
	u.frames(t, u.rest, [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", "a"}, {":path", createPath + "/v.acme"},
	}, []byte(createBody), window, read, more)
}

func (u unreadCaller) overGRPC(t *testing.T, window uint32, encoding string, read func(io.Reader), more func(*http2.Framer)) {
	message, err := proto.Marshal(&hooksv1alpha1.BeforeClusterCreateRequest{Handler: "v.acme", Cluster: clusterIn("n")})
	if err != nil {
		t.Error(err)
	}
	u.frames(t, u.grpc, [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", "a"},
		{":path", "/" + hooksv1alpha1.LifecycleHooksService_ServiceDesc.ServiceName + "/BeforeClusterCreate"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"grpc-encoding", encoding},
	}, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...), window, read, more)
}

// Answers that two hosts do not read, or read too slowly, end, whatever their protocol and their size, and give back
// their memory; small calls of a third host are answered all the time.
func TestAnswersThatNobodyReads(t *testing.T) {
	const large, calls = 19 << 20, 6
	nothing, all := func(io.Reader) {}, func(r io.Reader) { _, _ = io.Copy(io.Discard, r) }
	drip := func(r io.Reader) {
		for b := make([]byte, 1<<10); ; time.Sleep(100 * time.Millisecond) {
			if _, err := r.Read(b); err != nil {
				return
			}
		}
	}
	none := func(*http2.Framer) {}
	drips := func(f *http2.Framer) {
		for f.WriteWindowUpdate(1, 1<<10) == nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	const open, closed = 1 << 30, 0
	for name, tc := range map[string]struct {
		size int
		call func(*testing.T, unreadCaller)
	}{
		"HTTP/1.1":                    {large, func(t *testing.T, u unreadCaller) { u.overHTTP1(t, nothing) }},
		"HTTP/1.1, dripping":          {large, func(t *testing.T, u unreadCaller) { u.overHTTP1(t, drip) }},
		"HTTP/2":                      {large, func(t *testing.T, u unreadCaller) { u.overHTTP2(t, open, nothing, none) }},
		"HTTP/2 without a window":     {large, func(t *testing.T, u unreadCaller) { u.overHTTP2(t, closed, all, none) }},
		"HTTP/2, dripping":            {large, func(t *testing.T, u unreadCaller) { u.overHTTP2(t, closed, all, drips) }},
		"HTTP/2, small":               {1 << 10, func(t *testing.T, u unreadCaller) { u.overHTTP2(t, closed, all, none) }},
		"gRPC":                        {large, func(t *testing.T, u unreadCaller) { u.overGRPC(t, open, "identity", nothing, none) }},
		"gRPC without a window":       {large, func(t *testing.T, u unreadCaller) { u.overGRPC(t, closed, "identity", all, none) }},
		"gRPC, dripping":              {large, func(t *testing.T, u unreadCaller) { u.overGRPC(t, closed, "identity", all, drips) }},
		"gRPC, small":                 {1 << 10, func(t *testing.T, u unreadCaller) { u.overGRPC(t, closed, "identity", all, none) }},
		"gRPC, which could be zipped": {large, func(t *testing.T, u unreadCaller) { u.overGRPC(t, closed, "gzip", all, none) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			text := fmt.Sprintf(`{"status":"Success","x":%q}`, strings.Repeat("x", tc.size))
			f.registerREST(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if strings.HasSuffix(r.URL.Path, "/small") {
					_, _ = io.WriteString(w, `{"status":"Success"}`)
					return
				}
				_, _ = io.WriteString(w, text)
			}, handlerOf("v", "BeforeClusterCreate", hook.Fail), handlerOf("small", "BeforeClusterCreate", hook.Fail))
			var u unreadCaller
			u.rest, u.grpc, u.trust = serve(t, func(c *servers.Config) {
				c.REST, c.GRPCOptions = f.front, GRPCOptions()
				c.Register = func(r grpc.ServiceRegistrar) { RegisterGRPC(r, f.front.(*REST).dispatcher, f.services) }
			})
			began := time.Now()
			for i := range calls {
				u.host = fmt.Sprintf("127.0.0.%d", 2+i%2)
				tc.call(t, u)
			}
			process.Eventually(t, "answers have memory", func() bool { return f.memory.Usage().Used >= calls*callBytes })
			other := unreadCaller{host: "127.0.0.4", rest: u.rest, trust: u.trust}
			client := &http.Client{Transport: &http.Transport{DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
				return other.dial(t, other.rest, "http/1.1"), nil
			}}}
			process.Eventually(t, "the answers end", func() bool {
				resp, err := client.Post("https://"+u.rest+createPath+"/small.acme", "application/json", strings.NewReader(createBody))
				if err != nil {
					t.Fatal(err)
				}
				body, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Errorf("a small call of another host: %s: %s", resp.Status, body)
				}
				return f.memory.Usage().Used == 0
			})
			if took := time.Since(began); took < limits.AnswerPatience || took > 10*limits.AnswerPatience {
				t.Errorf("the answers ended after %s, want %s and a little", took, limits.AnswerPatience)
			}
		})
	}
}

// An answer that is read steadily, and neither fast nor at once, comes to its end.
func TestAnswersThatAreReadSlowly(t *testing.T) {
	f := newFixture(t, nil)
	const size = 8 << 20
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"status":"Success","x":%q}`, strings.Repeat("x", size))
	})
	for _, client := range []*http.Client{f.rest.Client(), overHTTP1(f)} {
		resp, err := client.Post(f.rest.URL+createPath+"/v.acme", "application/json", strings.NewReader(createBody))
		if err != nil {
			t.Fatal(err)
		}
		var n int64
		for err == nil {
			var read int64
			read, err = io.CopyN(io.Discard, resp.Body, 128<<10)
			n += read
			time.Sleep(100 * time.Millisecond)
		}
		if !errors.Is(err, io.EOF) || n < size {
			t.Errorf("%s: %d bytes, %v", resp.Proto, n, err)
		}
		_ = resp.Body.Close()
	}
}
