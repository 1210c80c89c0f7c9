// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command rest-extension is a Runtime Extension in its simplest form: an HTTPS server that answers JSON with JSON. It
// uses only the standard library. This file is the server; hooks.go implements the hooks. Requests are answered
// concurrently, in goroutines that share nothing.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// apiVersion is in every request and every answer, and in the path of every hook.
	apiVersion = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
	// maxRequestBytes is Cluster API's limit for requests.
	maxRequestBytes = 20 << 20
)

func main() {
	address := flag.String("address", "127.0.0.1:9442", "address to serve HTTPS at; port 0 chooses one")
	certDir := flag.String("cert-dir", "", "directory with tls.crt and tls.key")
	flag.Parse()
	if *certDir == "" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: rest-extension --cert-dir DIR [--address HOST:PORT]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *address, *certDir)
	stop()
	if err != nil {
		log.Fatalf("rest-extension: %v", err)
	}
}

// run serves until ctx ends, then finishes the requests in flight.
func run(ctx context.Context, address, certDir string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newHandler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() {
		served <- server.ServeTLS(listener, filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
	}()
	fmt.Printf("rest-extension serving https=%s\n", listener.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// newHandler maps paths to functions. The path is /<apiVersion>/<hook>/<handler>, all in lower case; the
// names of the handlers are this extension's choice, and discovery lists them.
func newHandler() http.Handler {
	mux := http.NewServeMux()
	handle(mux, "Discovery", "", discovery)
	handle(mux, "BeforeClusterCreate", "approval", beforeClusterCreate)
	handle(mux, "GeneratePatches", "node-image", generatePatches)
	handle(mux, "DiscoverVariables", "node-image-variables", discoverVariables)
	return mux
}

// handle reads the request of a hook, calls the function, and writes its answer.
func handle[Request any](mux *http.ServeMux, hook, handler string, answer func(Request) response) {
	path := "/" + apiVersion + "/" + strings.ToLower(hook)
	if handler != "" {
		path += "/" + handler
	}
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var request Request
		var result response
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&request); err != nil {
			// A request that this extension cannot read is an answer too, so the status code stays 200.
			result = response{Status: failure, Message: "read request: " + err.Error()}
		} else {
			result = answer(request)
		}
		result.APIVersion, result.Kind = apiVersion, hook+"Response"
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(result); err != nil {
			log.Printf("%s: write answer: %v", hook, err)
		}
	})
}
