// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/samples"
)

const (
	// allRules is the number of HookRules that are measured, of which matchingRules are for the Cluster of the calls.
	allRules      = 1000
	matchingRules = 5
	// hookRules is a hook that no handler of the null extension answers.
	hookRules = "BeforeClusterUpgrade"
)

// measureRules measures calls that only HookRules answer beside the same calls without any.
func (f *fleet) measureRules(ctx context.Context, o options, res *report.Result, stdout io.Writer) error {
	direct := f.peer(peerDirect)
	if !o.part(partRules) || f.peer(peerGateway) == nil {
		return nil
	}
	inner := &fleet{dir: f.dir, certs: f.certs, stderr: new(strings.Builder)}
	defer inner.stop()
	for _, n := range []int{0, allRules} {
		if err := inner.startGateway(ctx, &inner.peers, gatewaySpec{
			name: peerGateway, binary: o.hookgate, rules: n, extensions: map[string]string{extensionName: "https://" + direct.address},
		}); err != nil {
			return err
		}
	}
	r := &report.Rules{Rules: allRules, Matching: matchingRules, Callers: severalCallers}
	c := cell{payload: payload{hook: hookRules, body: samples.Body(hookRules)}, callers: r.Callers, protocol: http1Protocol}
	if err := f.measureTurns(ctx, "rules", o.pace, turn{c, inner.peers[0], &r.None}, turn{c, inner.peers[1], &r.All}); err != nil {
		return err
	}
	res.Rules = r
	_, err := fmt.Fprintln(stdout, r.Table())
	return err
}

// ruleManifest returns one of the HookRules, the first of which are for the Cluster of the samples. Their expressions are
// evaluated, and hold nothing.
func ruleManifest(i int) object {
	environment := "production"
	if i >= matchingRules {
		environment = fmt.Sprintf("other-%d", i)
	}
	return object{
		"apiVersion": "hookgate.dev/v1alpha1", "kind": "HookRule", "metadata": object{"name": fmt.Sprintf("rule-%d", i)},
		"spec": object{
			"hook": hookRules, "objectSelector": object{"matchLabels": object{"environment": environment}},
			"hold": []object{{"if": `request.toKubernetesVersion == "v1.0.0"`, "message": `"waits for " + request.cluster.metadata.name`}},
		},
	}
}
