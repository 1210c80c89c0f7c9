// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/test/samples"
)

// leastBody is the smallest size that can be asked for: the members that every request has need less.
const leastBody = 512

// payload is one size of request, and the handler that it goes to.
type payload struct {
	size    string
	hook    string
	handler string
	body    []byte
}

// newPayload returns the payload of a size in flags: S, M, L, or a number with its unit, such as 64KB or 20MiB.
func newPayload(size string) (payload, error) {
	switch size {
	case "S":
		return payload{size: size, hook: hookS, handler: handlerS, body: samples.S()}, nil
	case "M":
		return payload{size: size, hook: hookML, handler: handlerML, body: samples.M()}, nil
	case "L":
		return payload{size: size, hook: hookML, handler: handlerML, body: samples.L()}, nil
	}
	n, err := parseBytes(size)
	if err != nil || n < leastBody || n > limits.BodyBytes {
		return payload{}, fmt.Errorf("%w: --sizes: %q is none of S, M, L, and no number of bytes from %d B to %d MiB",
			errUsage, size, leastBody, limits.BodyBytes>>20)
	}
	return sized(size, n), nil
}

// parseBytes parses a number with one of the units B, KB, MB, KiB and MiB.
func parseBytes(text string) (int, error) {
	for _, unit := range []struct {
		name  string
		bytes int
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"KB", 1e3}, {"MB", 1e6}, {"B", 1}} {
		if number, ok := strings.CutSuffix(text, unit.name); ok {
			n, err := strconv.ParseUint(number, 10, 24)
			return int(n) * unit.bytes, err
		}
	}
	return 0, strconv.ErrSyntax
}

// sized returns a payload of at most n bytes: templates to patch, as many as there is room for, or a Cluster with an
// annotation of the right length where there is room for none.
func sized(size string, n int) payload {
	one := len(samples.Marshal(samples.GeneratePatches(1)))
	if n < one {
		return payload{size: size, hook: hookS, handler: handlerS, body: paddedCluster(n)}
	}
	// The lengths of items differ, so that what they take on average becomes known from step to step.
	items, body := n/one, []byte(nil)
	for range 4 {
		body = samples.Marshal(samples.GeneratePatches(items))
		average := len(body) / items
		if len(body) <= n && n-len(body) < n/100+2*average {
			break
		}
		items = n / average
	}
	for len(body) > n {
		items -= max(1, (len(body)-n)*items/len(body))
		body = samples.Marshal(samples.GeneratePatches(items))
	}
	return payload{size: size, hook: hookML, handler: handlerML, body: body}
}

// paddedCluster returns a request of exactly n bytes, at least leastBody.
func paddedCluster(n int) []byte {
	const format = `{"apiVersion":%q,"kind":"BeforeClusterCreateRequest","cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2",` +
		`"kind":"Cluster","metadata":{"name":"a","namespace":"b","annotations":{"padding":"%s"}}}}`
	bare := len(fmt.Sprintf(format, hook.APIVersion, ""))
	return fmt.Appendf(nil, format, hook.APIVersion, strings.Repeat("x", n-bare))
}
