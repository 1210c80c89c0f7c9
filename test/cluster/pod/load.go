// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookgate/hookgate/caller"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// target is a gateway and what a caller shows it.
type target struct {
	https, grpc string
	certs       string // a directory with ca.crt, tls.crt and tls.key
	token       string // a file; in place of the certificate
	hook        string // over HTTPS
	address     string // to connect to over HTTPS, in place of the URL's
}

const group = "hooks.runtime.cluster.x-k8s.io/v1alpha1"

func (t *target) flags(flags *flag.FlagSet) {
	flags.StringVar(&t.https, "https", "https://hookgate.hookgate-system.svc:443", "URL for calls over HTTPS")
	flags.StringVar(&t.grpc, "grpc", "grpcs://hookgate.hookgate-system.svc:9090", "URL for calls over gRPC; none if empty")
	flags.StringVar(&t.certs, "certs", "/certs", "directory with ca.crt, tls.crt and tls.key")
	flags.StringVar(&t.token, "token-file", "", "file with a token, in place of the certificate")
	flags.StringVar(&t.address, "address", "", "host:port to connect to over HTTPS, in place of the URL's")
	flags.StringVar(&t.hook, "hook", "BeforeClusterCreate", "hook to call over HTTPS: BeforeClusterCreate or BeforeClusterUpgrade")
}

// client returns a client of HTTPS. Without keep, each call has a connection of its own.
func (t *target) client(keep bool) (*http.Client, error) {
	config, err := t.tls()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: !keep, ForceAttemptHTTP2: keep}
	if t.address != "" {
		transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, t.address)
		}
	}
	return &http.Client{Transport: transport, Timeout: time.Minute}, nil
}

func (t *target) tls() (*tls.Config, error) {
	ca, err := os.ReadFile(filepath.Join(t.certs, "ca.crt"))
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS13}
	config.RootCAs.AppendCertsFromPEM(ca)
	if t.token != "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(t.certs, "tls.crt"), filepath.Join(t.certs, "tls.key"))
	config.Certificates = []tls.Certificate{pair}
	return config, err
}

// post sends a request of the hook, and returns an error unless the answer lets the Cluster pass.
func (t *target) post(client *http.Client, body []byte) error {
	request, err := http.NewRequest(http.MethodPost, t.https+"/"+group+"/"+strings.ToLower(t.hook), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if t.token != "" {
		token, err := os.ReadFile(t.token)
		if err != nil {
			return err
		}
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status            string
		RetryAfterSeconds int
	}
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("%d: %.300s", response.StatusCode, text)
	}
	if answer.Status != "Success" || answer.RetryAfterSeconds != 0 {
		return fmt.Errorf("%w: %.300s", errWrong, text)
	}
	return nil
}

// errWrong is an answer that says something else than the extension.
var errWrong = errors.New("a wrong answer")

// cluster is one that the extension approves.
const cluster = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c1","namespace":"default",` +
	`"uid":"6f3c2a44-0c4b-4e43-9d8e-6d7c0ee0a8c1","annotations":{"example.com/approved-by":"%s","example.hookgate.dev/approved-minor":"v1.37"}},"spec":{}}`

func (t *target) body(approver string) []byte {
	versions := ""
	if t.hook == "BeforeClusterUpgrade" {
		versions = `"fromKubernetesVersion":"v1.36.0","toKubernetesVersion":"v1.37.0",`
	}
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"%sRequest",%s"cluster":`+cluster+`}`, group, t.hook, versions, approver)
}

// counts are what load prints, as JSON, in its last line.
type counts struct {
	Calls, Failed, Wrong int
	Slowest              string
	Failing              string // from the start of the first call that failed to the end of the last
}

// load calls at a steady rate, in turns with a connection for each call, over one that stays, and over gRPC.
func load(args []string) error {
	var t target
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	t.flags(flags)
	rate := flags.Int("rate", 20, "calls per second")
	duration := flags.Duration("for", 10*time.Second, "how long to call")
	kept := flags.Bool("kept", false, "no call has a connection of its own")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var ways []func() error
	for _, keep := range []bool{false, true} {
		if *kept && !keep {
			continue
		}
		client, err := t.client(keep)
		if err != nil {
			return err
		}
		ways = append(ways, func() error { return t.post(client, t.body("me")) })
	}
	if t.grpc != "" {
		config := caller.Config{URL: t.grpc, CAFile: filepath.Join(t.certs, "ca.crt"), TokenFile: t.token}
		if t.token == "" {
			config.CertFile, config.KeyFile = filepath.Join(t.certs, "tls.crt"), filepath.Join(t.certs, "tls.key")
		}
		c, err := caller.New(config)
		if err != nil {
			return err
		}
		ways = append(ways, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			answer, err := c.BeforeClusterCreate(ctx, &hooksv1alpha1.BeforeClusterCreateRequest{
				Cluster: &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, cluster, "me")}})
			if err == nil && answer.GetRetryAfterSeconds() != 0 {
				err = fmt.Errorf("%w: %v", errWrong, answer)
			}
			return err
		})
	}
	var (
		mu          sync.Mutex
		wg          sync.WaitGroup
		took        []time.Duration
		all         counts
		first, last time.Time // of calls that failed
	)
	ticker := time.NewTicker(time.Second / time.Duration(*rate))
	defer ticker.Stop()
	for end := time.Now().Add(*duration); time.Now().Before(end); all.Calls++ {
		call := ways[all.Calls%len(ways)]
		started := <-ticker.C
		wg.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(started))
			if errors.Is(err, errWrong) {
				all.Wrong++
			} else if err != nil {
				all.Failed++
				if last = time.Now(); first.IsZero() || started.Before(first) {
					first = started
				}
			}
			if err != nil {
				fmt.Printf("%s failed after %v: %v\n", started.UTC().Format("15:04:05.000"), time.Since(started).Round(time.Millisecond), err)
			}
		})
	}
	wg.Wait()
	all.Slowest = slices.Max(took).Round(time.Millisecond).String()
	all.Failing = last.Sub(first).Round(time.Millisecond).String()
	return json.NewEncoder(os.Stdout).Encode(all)
}

// large has callers send requests of many bytes at once, and prints how many were answered: a gateway that has no room for
// one may refuse it, but no call may end without an answer.
func large(args []string) error {
	var t target
	flags := flag.NewFlagSet("large", flag.ContinueOnError)
	t.flags(flags)
	callers := flags.Int("callers", 20, "how many call at the same time")
	size := flags.Int("bytes", 15<<20, "bytes of a request")
	times := flags.Int("times", 3, "calls of each")
	if err := flags.Parse(args); err != nil {
		return err
	}
	body := t.body(string(bytes.Repeat([]byte("x"), *size)))
	var (
		mu              sync.Mutex
		wg              sync.WaitGroup
		answered, ended int
		last            error
	)
	for range *callers {
		client, err := t.client(false)
		if err != nil {
			return err
		}
		wg.Go(func() {
			for range *times {
				err := t.post(client, body)
				mu.Lock()
				ended++
				if err == nil {
					answered++
				} else {
					last = err
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	fmt.Printf("%d of %d calls succeeded; the last other answer: %.300v\n", answered, ended, last)
	return nil
}
