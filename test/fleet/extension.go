// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/samples"
)

// extensionCommand makes this program the extension.
const extensionCommand = "extension"

// extensionName is the name of its ExtensionConfig.
const extensionName = "fleet"

// listening is what the extension prints before its address.
const listening = "extension listening "

// handlerOf returns the name of the only handler of a hook.
func handlerOf(hookName string) string { return strings.ToLower(hookName) }

func pathOf(hookName, handler string) string {
	return hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hookName}.Path(handler)
}

// runExtension serves the extension until its input closes.
func runExtension(args []string) error {
	flags := flag.NewFlagSet(extensionCommand, flag.ContinueOnError)
	cert, key := flags.String("cert", "", ""), flags.String("key", "", "")
	takes := flags.Duration("takes", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { // it does not outlive the measurement
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(listening + l.Addr().String())
	server := &http.Server{
		Handler: newExtension(flags.Args(), *takes), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	return server.ServeTLS(l, "", "")
}

// newExtension returns an extension that has a handler for each of the hooks, and takes some time for each call. It
// patches every item of GeneratePatches.
func newExtension(hooks []string, takes time.Duration) http.Handler {
	mux := http.NewServeMux()
	var handlers []runtimehooksv1.ExtensionHandler
	for _, name := range hooks {
		handlers = append(handlers, runtimehooksv1.ExtensionHandler{
			Name: handlerOf(name), RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: hook.APIVersion, Hook: name},
		})
		mux.HandleFunc(pathOf(name, handlerOf(name)), func(w http.ResponseWriter, r *http.Request) {
			due := time.NewTimer(takes)
			defer due.Stop()
			request, err := io.ReadAll(r.Body)
			if err != nil {
				return // the caller has left
			}
			answer, err := answerTo(name, request)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			select {
			case <-due.C:
			case <-r.Context().Done():
				return
			}
			writeJSON(w, answer)
		})
	}
	discovery := &runtimehooksv1.DiscoveryResponse{Handlers: handlers}
	discovery.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("DiscoveryResponse"))
	discovery.Status = runtimehooksv1.ResponseStatusSuccess
	mux.HandleFunc(pathOf(hook.Discovery, ""), func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, samples.Marshal(discovery)) })
	return mux
}

func writeJSON(w http.ResponseWriter, answer []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a caller that has left needs none
}

// answerTo returns the answer of a hook to a request: nothing is held, and each item gets a patch.
func answerTo(name string, request []byte) ([]byte, error) {
	if name != "GeneratePatches" {
		answer := samples.Response(name)
		if retry, ok := answer.(runtimehooksv1.RetryResponseObject); ok {
			retry.SetRetryAfterSeconds(0)
		}
		return samples.Marshal(answer), nil
	}
	var asked struct {
		Items []struct {
			UID types.UID `json:"uid"`
		} `json:"items"`
	}
	if err := json.Unmarshal(request, &asked); err != nil {
		return nil, err
	}
	answer := &runtimehooksv1.GeneratePatchesResponse{}
	answer.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind(name + "Response"))
	answer.Status = runtimehooksv1.ResponseStatusSuccess
	for _, item := range asked.Items {
		answer.Items = append(answer.Items, runtimehooksv1.GeneratePatchesResponseItem{
			UID: item.UID, PatchType: runtimehooksv1.JSONPatchType,
			Patch: []byte(`[{"op":"add","path":"/spec/template/spec/image","value":"registry.example.com/image:v7"}]`),
		})
	}
	return samples.Marshal(answer), nil
}
