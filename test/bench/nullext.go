// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/hook"
)

const (
	// extensionName is the name of the null extension's ExtensionConfig: its handlers are registered as <handler>.null.
	extensionName = "null"

	hookS    = "BeforeClusterCreate"
	hookML   = "GeneratePatches"
	hookSlow = "BeforeClusterDelete"

	handlerS = "s"
	// These answer hookS, too. A policy says that they understand the objects that are sent, and older ones.
	handlerSame      = "s-same"
	handlerConverted = "s-converted"

	handlerML = "m"

	// slowTime is how long each of the handlers takes that fan-out is measured with, and maxSlowHandlers how many there
	// may be: a registration has room for twelve more.
	slowTime        = 20 * time.Millisecond
	maxSlowHandlers = 500

	// connectionsPath is where the null extension says how many connections it has accepted.
	connectionsPath = "/connections"
)

func slowHandler(i int) string { return fmt.Sprintf("slow%d", i) }

func hookPath(name, handler string) string {
	return hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: name}.Path(handler)
}

// nullExtension answers every hook at once with the least that is valid, after it has read the whole request. It has
// that many slow handlers, and says how many connections were accepted.
func nullExtension(slowHandlers int, accepted *atomic.Int64) http.Handler {
	type answer struct {
		body  []byte
		delay time.Duration
	}
	type requestHook struct {
		APIVersion string `json:"apiVersion"`
		Hook       string `json:"hook"`
	}
	type handler struct {
		Name        string      `json:"name"`
		RequestHook requestHook `json:"requestHook"`
	}

	answers := make(map[string]answer)
	var handlers []handler
	add := func(name, hookName, members string, delay time.Duration) {
		body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"status":"Success"%s}`, hook.APIVersion, hookName+"Response",
			members)
		answers[hookPath(hookName, name)] = answer{body: []byte(body), delay: delay}
		handlers = append(handlers, handler{Name: name, RequestHook: requestHook{hook.APIVersion, hookName}})
	}
	for _, name := range []string{handlerS, handlerSame, handlerConverted} {
		add(name, hookS, `,"retryAfterSeconds":0`, 0)
	}
	add(handlerML, hookML, "", 0)
	for i := range slowHandlers {
		add(slowHandler(i), hookSlow, `,"retryAfterSeconds":0`, slowTime)
	}
	discovery, err := json.Marshal(map[string]any{
		"apiVersion": hook.APIVersion, "kind": "DiscoveryResponse", "status": "Success", "handlers": handlers,
	})
	if err != nil {
		panic(err) // Plain strings always encode.
	}
	answers[hookPath(hook.Discovery, "")] = answer{body: discovery}

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == connectionsPath {
			_, _ = fmt.Fprint(w, accepted.Load()) // a caller that left needs no answer
			return
		}
		a, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if a.delay > 0 {
			time.Sleep(a.delay)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(a.body) // A caller that left needs no answer.
	})
}

// servePeer serves h over TLS on a free loopback port, HTTP/1.1 and HTTP/2, and prints the address. It counts the
// accepted connections, is the main function of the peers' processes, and ends when the harness does.
func servePeer(h http.Handler, accepted *atomic.Int64, certFile, keyFile string) error {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(listeningPrefix + l.Addr().String())
	srv := &http.Server{
		Handler:           h,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: time.Minute,
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				accepted.Add(1)
			}
		},
	}
	return srv.ServeTLS(l, "", "")
}
