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
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
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

	// slowTime is how long each of the handlers takes that fan-out is measured with, and maxHandlers how many there may
	// be in one extension: a registration has room for no more.
	slowTime    = 20 * time.Millisecond
	maxHandlers = limits.Handlers

	// What follows slowPath or quickPath in a path is the number of handlers of an extension for fan-out, which take
	// slowTime or no time.
	slowPath  = "/slow/"
	quickPath = "/quick/"

	// connectionsPath is where the null extension says how many connections it has accepted.
	connectionsPath = "/connections"
)

func fanHandler(i int) string { return fmt.Sprintf("h%d", i) }

func hookPath(name, handler string) string {
	return hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: name}.Path(handler)
}

// nullHandler is a handler of the null extension.
type nullHandler struct {
	Name        string `json:"name"`
	RequestHook struct {
		APIVersion string `json:"apiVersion"`
		Hook       string `json:"hook"`
	} `json:"requestHook"`
}

func newNullHandler(name, hookName string) nullHandler {
	h := nullHandler{Name: name}
	h.RequestHook.APIVersion, h.RequestHook.Hook = hook.APIVersion, hookName
	return h
}

// nullAnswer returns the least that is valid as an answer of the hook, with more members.
func nullAnswer(hookName, members string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"status":"Success"%s}`, hook.APIVersion, hookName+"Response", members)
}

func nullDiscovery(handlers []nullHandler) []byte {
	list, err := json.Marshal(handlers)
	if err != nil {
		panic(err) // Plain strings always encode.
	}
	return nullAnswer(hook.Discovery, `,"handlers":`+string(list))
}

// nullExtension answers every hook at once with the least that is valid, after it has read the whole request. Below
// slowPath and quickPath it is an extension with many handlers of hookSlow. It says how many connections were accepted.
func nullExtension(accepted *atomic.Int64) http.Handler {
	const retry = `,"retryAfterSeconds":0`
	answers := map[string][]byte{hookPath(hookML, handlerML): nullAnswer(hookML, "")}
	handlers := []nullHandler{newNullHandler(handlerML, hookML)}
	for _, name := range []string{handlerS, handlerSame, handlerConverted} {
		answers[hookPath(hookS, name)] = nullAnswer(hookS, retry)
		handlers = append(handlers, newNullHandler(name, hookS))
	}
	answers[hookPath(hook.Discovery, "")] = nullDiscovery(handlers)

	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, r *http.Request, body []byte, delay time.Duration) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if delay > 0 {
			time.Sleep(delay)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // A caller that left needs no answer.
	}
	mux.HandleFunc(connectionsPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, accepted.Load()) // A caller that left needs no answer.
	})
	handlePatches(mux, answer)
	fan := nullAnswer(hookSlow, retry)
	for prefix, delay := range map[string]time.Duration{slowPath: slowTime, quickPath: 0} {
		mux.HandleFunc(prefix+"{handlers}/", func(w http.ResponseWriter, r *http.Request) {
			n, err := strconv.Atoi(r.PathValue("handlers"))
			switch {
			case err != nil || n < 1 || n > maxHandlers:
				http.NotFound(w, r)
			case strings.HasSuffix(r.URL.Path, hookPath(hook.Discovery, "")):
				var handlers []nullHandler
				for i := range n {
					handlers = append(handlers, newNullHandler(fanHandler(i), hookSlow))
				}
				answer(w, r, nullDiscovery(handlers), 0)
			default:
				answer(w, r, fan, delay)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, ok := answers[r.URL.Path]; ok {
			answer(w, r, body, 0)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// listenAsPeer listens on a free loopback port, and prints the address for the harness, with which the process ends.
func listenAsPeer() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	endWithStdin()
	fmt.Println(listeningPrefix + l.Addr().String())
	return l, nil
}

// servePeer serves h over TLS on a free loopback port, HTTP/1.1 and HTTP/2, and prints the address. It counts the
// accepted connections, is the main function of the peers' processes, and ends when the harness does.
func servePeer(h http.Handler, accepted *atomic.Int64, certFile, keyFile string) error {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return err
	}
	l, err := listenAsPeer()
	if err != nil {
		return err
	}
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

// endWithStdin ends this process when the harness has ended, and with it the other end of the input.
func endWithStdin() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
}
