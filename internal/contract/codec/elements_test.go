// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// repeated returns n texts, separated by commas. Each %d is the number of its text.
func repeated(n int, text string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strings.ReplaceAll(text, "%d", strconv.Itoa(i)))
	}
	return b.String()
}

// TestElementsLimit has as many elements as a body may have, and one more, of every sort and together.
func TestElementsLimit(t *testing.T) {
	const most = limits.Elements
	tests := map[string]struct {
		body func(n int) string // with n elements
		into proto.Message
	}{
		"List":    {func(n int) string { return `{"items":[` + repeated(n, "{}") + `]}` }, &hooksv1alpha1.GeneratePatchesRequest{}},
		"Map":     {func(n int) string { return `{"settings":{` + repeated(n, `"%d":""`) + `}}` }, &hooksv1alpha1.GeneratePatchesRequest{}},
		"Unknown": {func(n int) string { return `{` + repeated(n, `"%d":0`) + `}` }, &hooksv1alpha1.GeneratePatchesRequest{}},
		"ListInList": {func(n int) string {
			return `{"items":[{"variables":[` + repeated(n/2-1, "{}") + `]},{"variables":[` + repeated(n-n/2-1, "{}") + `]}]}`
		}, &hooksv1alpha1.GeneratePatchesRequest{}},
		"Together": {func(n int) string {
			return `{"settings":{"a":"","b":""},"new":1,"items":[` + repeated(n-4, "{}") + `,{"new":1}]}`
		}, &hooksv1alpha1.ValidateTopologyRequest{}},
		"Handlers": {func(n int) string { return `{"handlers":[` + repeated(n, "{}") + `]}` }, &hooksv1alpha1.DiscoveryResponse{}},
	}
	c := New(catalog.New())
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			extra := 0
			if name == "Together" {
				extra = 1 // 2 entries, 2 unknown members and n-4 items make n; the last item is one more
			}
			if err := c.Decode([]byte(tc.body(most-extra)), tc.into.ProtoReflect().New().Interface()); err != nil {
				t.Errorf("%d elements: %v", most, err)
			}
			err := c.Decode([]byte(tc.body(most-extra+1)), tc.into.ProtoReflect().New().Interface())
			if !errors.Is(err, ErrTooMany) || err.Error() != "has more than 100000 list elements, map entries and unknown members in total" {
				t.Errorf("%d elements: got %v", most+1, err)
			}
		})
	}
	// Raw objects are not built, so what is in them does not count.
	raw := `{"cluster":{"a":[` + repeated(most+1, "{}") + `]}}`
	if err := c.Decode([]byte(raw), &hooksv1alpha1.BeforeClusterCreateRequest{}); err != nil {
		t.Errorf("elements of a raw object: %v", err)
	}
}

// TestBombsAllocateLittle decodes 20 MiB that would become gigabytes.
func TestBombsAllocateLittle(t *testing.T) {
	c := New(catalog.New())
	for name, body := range map[string]string{
		"Items":    `{"items":[` + repeated(limits.BodyBytes/3, "{}"),
		"Unknown":  `{` + repeated(1_500_000, `"%d":0`),
		"Settings": `{"settings":{` + repeated(1_500_000, `"%d":""`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.Decode([]byte(body), &hooksv1alpha1.GeneratePatchesRequest{})
		runtime.ReadMemStats(&after)
		if !errors.Is(err, ErrTooMany) {
			t.Errorf("%s: got %v", name, err)
		}
		// The body itself is copied once, from the string.
		if allocated := after.TotalAlloc - before.TotalAlloc - uint64(len(body)); allocated > 64<<20 {
			t.Errorf("%s: decoding %d MiB allocated %d MiB more", name, len(body)>>20, allocated>>20)
		}
	}
}

// TestGuardReserves holds that what a message takes is reserved before it is built, and that a refusal ends the decoding.
func TestGuardReserves(t *testing.T) {
	c := New(catalog.New())
	long := strings.Repeat("x", 1<<20)
	for name, tc := range map[string]struct {
		body  string
		least int64 // bytes to be reserved
	}{
		"Small":   {`{"items":[{}],"settings":{"a":"b"}}`, 0},
		"Items":   {`{"items":[` + repeated(10_000, "{}") + `]}`, 1 << 20},
		"Unknown": {`{` + repeated(10_000, `"%d":0`) + `}`, 1 << 20},
		"Value":   {`{"settings":{"a":"` + long + `"}}`, 1 << 20},
		"Key":     {`{"settings":{"` + long + `":""}}`, 1 << 20},
		"Name":    {`{"` + long + `":0}`, 1 << 20},
		"String":  {`{"items":[{"uid":"` + long + `"}]}`, 1 << 20},
	} {
		var reserved int64
		g := Guard{Reserve: func(n int64) error { reserved += n; return nil }}
		if _, err := c.DecodeGuarded([]byte(tc.body), &hooksv1alpha1.GeneratePatchesRequest{}, g); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if reserved < tc.least || tc.least == 0 && reserved > 0 {
			t.Errorf("%s: %d bytes were reserved, want at least %d", name, reserved, tc.least)
		}
		full := errors.New("the memory is used up")
		g.Reserve = func(int64) error { return full }
		_, err := c.DecodeGuarded([]byte(tc.body), &hooksv1alpha1.GeneratePatchesRequest{}, g)
		if tc.least > 0 && !errors.Is(err, full) || tc.least == 0 && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestScansLookAtTheDeadline holds that a large body is not read to its end once its context is done, wherever its bytes
// are, and that a small one is.
func TestScansLookAtTheDeadline(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := New(catalog.New())
	for name, body := range map[string]string{
		"Array":   `{"cluster":[` + repeated(1<<20, "1") + `]}`,
		"Members": `{"cluster":{` + repeated(1<<17, `"%d":1`) + `}}`,
		"Items":   `{"items":[` + repeated(90_000, `{"uid":""}`) + `]}`,
	} {
		m := proto.Message(&hooksv1alpha1.BeforeClusterCreateRequest{})
		if name == "Items" {
			m = &hooksv1alpha1.GeneratePatchesRequest{}
		}
		if _, err := c.DecodeGuarded([]byte(body), m, Guard{Step: ctx.Err}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want the error of the context", name, err)
		}
	}
	if _, err := c.DecodeGuarded([]byte(`{"cluster":{"a":1}}`), &hooksv1alpha1.BeforeClusterCreateRequest{}, Guard{Step: ctx.Err}); err != nil {
		t.Errorf("a small body: %v", err)
	}
	large := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`[` + repeated(1<<20, "1") + `]`)}}
	if err := c.CheckGuarded(large, Guard{Step: ctx.Err}); !errors.Is(err, context.Canceled) {
		t.Errorf("Check: got %v", err)
	}
	if err := c.Check(large); err != nil {
		t.Errorf("Check without an end: %v", err)
	}
}
