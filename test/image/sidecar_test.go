// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// maxSidecar bounds the memory of an idle sidecar that is its own. Pages of the program's file come besides: how many are
// resident is up to the kernel, which may map 2 MiB of them for each that is used, and takes them back when memory is
// short.
const maxSidecar = 24 << 20

// calm is an extension that accepts everything.
type calm struct {
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
}

func (calm) BeforeClusterCreate(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return &hooksv1alpha1.BeforeClusterCreateResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}, nil
}

// testSidecar runs the gateway as a sidecar, with only a Secret and a socket mounted. After calls, some of them large,
// its memory shrinks again.
func testSidecar(t *testing.T, i *image) {
	c := unpack(t, i)
	pair := certificates.New(t)
	c.mount(t, "/etc/hookgate/certs", map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM})
	mkdir(t, filepath.Join(c.root, "run"))
	socket := filepath.Join(c.root, "run", "x.sock")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(20 << 20))
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, calm{})
	reflection.Register(server)
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)

	// Not with the image as its root: it lacks /proc, which a container has.
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.root, "hookgate"), "serve",
		"--sidecar", "unix://"+socket, "--cert-dir", filepath.Join(c.root, "etc/hookgate/certs"),
		"--http-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0", "--health-addr", "127.0.0.1:0")
	g := process.RunGateway(t, cmd)
	g.WaitReady(t)
	awaitSmall(t, cmd.Process.Pid, "after the start")

	transport := &http.Transport{TLSClientConfig: pair.ClientTLS(), MaxIdleConnsPerHost: 8}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: process.Patience}
	url := "https://" + g.HTTPS + "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/beforeclustercreate"
	large := []byte(fmt.Sprintf(`{"cluster":{"x":"%s"}}`, bytes.Repeat([]byte("y"), 4<<20)))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for n := range 100 {
				body := samples.S()
				if n%20 == 0 {
					body = large
				}
				if err := call(client, url, body); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	awaitSmall(t, cmd.Process.Pid, "after 800 calls, 40 of which had 4 MiB")
	g.EndWell(t)
}

func call(client *http.Client, url string, body []byte) error {
	resp, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s, %w", resp.StatusCode, answer, err)
	}
	return nil
}

// awaitSmall waits until the memory of a sidecar is small again, some time after calls.
func awaitSmall(t *testing.T, pid int, when string) {
	t.Helper()
	began := time.Now()
	for {
		anonymous, err := process.Anonymous([]int{pid})
		if err != nil {
			t.Fatal(err)
		}
		if anonymous < maxSidecar {
			t.Logf("%s: %.1f MiB of its own, after %s", when, float64(anonymous)/(1<<20),
				time.Since(began).Round(time.Second))
			return
		}
		if time.Since(began) > process.Patience {
			t.Fatalf("%s: %.1f MiB of its own after %s, want less than %d MiB", when, float64(anonymous)/(1<<20),
				process.Patience, maxSidecar>>20)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
