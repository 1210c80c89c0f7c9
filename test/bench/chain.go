// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/samples"
)

const (
	// chainSteps is the number of handlers of the chain that is measured.
	chainSteps = 5
	// patchesPath and slowPatchesPath begin the paths of extensions with chainSteps handlers of hookML, of which each
	// patches the bootstrap templates, half of the items of M. Those of slowPatchesPath take slowTime.
	patchesPath     = "/patches"
	slowPatchesPath = "/slow-patches"
)

func stepHandler(i int) string { return fmt.Sprintf("step%d", i) }

// handlePatches adds the extensions of a chain to the null extension.
func handlePatches(mux *http.ServeMux, answer func(http.ResponseWriter, *http.Request, []byte, time.Duration)) {
	var handlers []nullHandler
	for i := range chainSteps {
		handlers = append(handlers, newNullHandler(stepHandler(i), hookML))
	}
	for prefix, delay := range map[string]time.Duration{patchesPath: 0, slowPatchesPath: slowTime} {
		mux.HandleFunc(prefix+hookPath(hook.Discovery, ""), func(w http.ResponseWriter, r *http.Request) {
			answer(w, r, nullDiscovery(handlers), 0)
		})
		for i := range chainSteps {
			body := nullAnswer(hookML, `,"items":`+string(samples.Marshal(patchesOf(i))))
			mux.HandleFunc(prefix+hookPath(hookML, stepHandler(i)), func(w http.ResponseWriter, r *http.Request) {
				answer(w, r, body, delay)
			})
		}
	}
}

// patchesOf returns the patches of a step for M.
func patchesOf(step int) []runtimehooksv1.GeneratePatchesResponseItem {
	var items []runtimehooksv1.GeneratePatchesResponseItem
	for _, item := range samples.GeneratePatches(100).Items {
		if strings.HasSuffix(item.HolderReference.FieldPath, ".configRef") {
			items = append(items, runtimehooksv1.GeneratePatchesResponseItem{
				UID: item.UID, PatchType: runtimehooksv1.JSONPatchType,
				Patch: fmt.Appendf(nil, `[{"op":"add","path":"/spec/template/spec/step%d","value":"a value"}]`, step),
			})
		}
	}
	return items
}

// measureChains measures a chain with M, if that is among the cells: the time with slow steps, and the CPU time with
// quick ones beside that of a call to one of them.
func (f *fleet) measureChains(ctx context.Context, o options, res *report.Result, stdout io.Writer) error {
	if !o.part(partChain) || f.peer(peerGateway) == nil {
		return nil
	}
	m, err := newPayload("M")
	if err != nil {
		return err
	}
	inner := &fleet{dir: f.dir, certs: f.certs, stderr: new(strings.Builder)}
	defer inner.stop()
	upstream := "https://" + f.peer(peerDirect).address
	if err := inner.startGateway(ctx, &inner.peers, gatewaySpec{
		name: peerGateway, binary: o.hookgate, chains: []string{"quick", "slow"}, extensions: map[string]string{
			extensionName: upstream, "quick": upstream + patchesPath, "slow": upstream + slowPatchesPath,
		},
	}); err != nil {
		return err
	}
	gateway := inner.peers[0]
	gateway.suffix = "" // names of chains have none
	at := func(handler string) cell {
		p := m
		p.handler = handler
		return cell{payload: p, callers: 1, protocol: http1Protocol}
	}
	r := &report.Chain{Steps: chainSteps, BodyBytes: len(m.body), Patches: len(patchesOf(0))}
	r.StepMilliseconds = float64(slowTime.Milliseconds())
	if err := f.measureTurns(ctx, "chain", o.pace, turn{at(stepHandler(0) + ".quick"), gateway, &r.One},
		turn{at(chainName("quick")), gateway, &r.Quick}, turn{at(chainName("slow")), gateway, &r.Slow}); err != nil {
		return err
	}
	res.Chain = r
	_, err = fmt.Fprintln(stdout, r.Table())
	return err
}

// chainName is the name of the chain of an extension's handlers.
func chainName(extension string) string { return extension + "-chain" }

// chainManifest returns the HandlerChain of all handlers of an extension below patchesPath or slowPatchesPath.
func chainManifest(extension string) object {
	var steps []object
	for i := range chainSteps {
		steps = append(steps, object{"handler": stepHandler(i) + "." + extension})
	}
	return object{
		"apiVersion": "hookgate.dev/v1alpha1", "kind": "HandlerChain", "metadata": object{"name": chainName(extension)},
		"spec": object{"hook": hookML, "steps": steps},
	}
}
