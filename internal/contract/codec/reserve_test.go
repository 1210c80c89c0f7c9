// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/alloctest"
)

// itemsOf returns a request with so many items, whose names have so many characters that are written as six, and whose
// objects are segments of their own.
func itemsOf(n, characters int) *hooksv1alpha1.GeneratePatchesRequest {
	m := &hooksv1alpha1.GeneratePatchesRequest{}
	for range n {
		m.Items = append(m.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			HolderReference: &hooksv1alpha1.HolderReference{Name: strings.Repeat("<", characters)},
			Object:          &hooksv1alpha1.RawExtension{Raw: []byte(`"` + strings.Repeat("x", smallRaw) + `"`)},
		})
	}
	return m
}

// TestEncodingReserves holds that no text is written that was not reserved, and that nothing is written much beyond the
// limit, wherever the text is.
func TestEncodingReserves(t *testing.T) {
	c := New(catalog.New())
	escaped := strings.Repeat("<", 10<<10)
	texts := make([]string, 200)
	settings := map[string]string{}
	unknown := map[string]*hooksv1alpha1.JSON{}
	for i := range texts {
		texts[i] = escaped
		settings[strconv.Itoa(i)+escaped] = escaped
		unknown[strconv.Itoa(i)+escaped] = &hooksv1alpha1.JSON{Raw: []byte("1")}
	}
	for name, m := range map[string]proto.Message{
		"texts that fill chunks": itemsOf(2000, 2600),
		"texts that grow chunks": itemsOf(200, 9000),
		"settings":               &hooksv1alpha1.GeneratePatchesRequest{Settings: settings},
		"unknown members":        &hooksv1alpha1.GeneratePatchesRequest{UnknownMembers: unknown},
		"a list of texts": &hooksv1alpha1.DiscoverVariablesResponse{Variables: []*hooksv1alpha1.ClusterClassVariable{{
			DeprecatedV1Beta1Metadata: &hooksv1alpha1.ClusterClassVariableMetadata{Labels: settings},
		}}},
		"bytes": &hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: &hooksv1alpha1.Patch{Patch: make([]byte, 8<<20)}},
	} {
		t.Run(name, func(t *testing.T) {
			var reserved int64
			g := Guard{Reserve: func(n int64) error { reserved += n; return nil }}
			b, err := c.EncodeWithin(m, math.MaxInt64, g)
			if err != nil {
				t.Fatal(err)
			}
			most := uint64(3*reserved) + 1<<20 // with what the buffer has grown from
			alloctest.Bound{Base: most}.Check(t, 0, func() { _, err = c.EncodeWithin(m, math.MaxInt64, g) })
			const limit = 1 << 20
			alloctest.Bound{Base: 8 * limit}.Check(t, 0, func() { _, err = c.EncodeWithin(m, limit, Guard{}) })
			if b.Size() <= limit || !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes: got %v", b.Size(), err)
			}
			full := errors.New("the memory is used up")
			_, err = c.EncodeWithin(m, math.MaxInt64, Guard{Reserve: func(int64) error { return full }})
			if !errors.Is(err, full) {
				t.Errorf("without memory: got %v", err)
			}
		})
	}
}

// TestDecodingReserves holds that what is built of a body is reserved: about as much as it takes.
func TestDecodingReserves(t *testing.T) {
	c := New(catalog.New())
	many := func(n int, element string) string { return `[` + repeated(n, element) + `]` }
	long := strings.Repeat("1", 8<<20)
	for name, tc := range map[string]struct {
		body string
		m    proto.Message
		want string // of the error
	}{
		"items":          {`{"items":` + many(90_000, `{"holderReference":{},"object":{}}`) + `}`, &hooksv1alpha1.GeneratePatchesRequest{}, ""},
		"values":         {`{"variables":` + many(90_000, `{"value":1}`) + `}`, &hooksv1alpha1.GeneratePatchesRequest{}, ""},
		"handlers":       {`{"handlers":` + many(90_000, `{"requestHook":{}}`) + `}`, &hooksv1alpha1.DiscoveryResponse{}, ""},
		"metadata":       {`{"variables":` + many(40_000, `{"deprecatedV1Beta1Metadata":{"labels":{"a":""}}}`) + `}`, &hooksv1alpha1.DiscoverVariablesResponse{}, ""},
		"unknown":        {`{"items":` + many(45_000, `{"x":1}`) + `}`, &hooksv1alpha1.GeneratePatchesRequest{}, ""},
		"escapes":        {`{"settings":{"a":"\n` + long + `"},"items":[{"uid":"\n` + long + `"}]}`, &hooksv1alpha1.GeneratePatchesRequest{}, ""},
		"name":           {`{"\n` + long + `":1}`, &hooksv1alpha1.GeneratePatchesRequest{}, ""},
		"a long integer": {`{"retryAfterSeconds":` + long + `}`, &hooksv1alpha1.BeforeClusterCreateResponse{}, "want an integer"},
	} {
		t.Run(name, func(t *testing.T) {
			body := []byte(tc.body)
			var reserved int64
			g := Guard{Reserve: func(n int64) error { reserved += n; return nil }}
			_, err := c.DecodeGuarded(body, tc.m.ProtoReflect().New().Interface(), g)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatal(err)
			}
			// Lists that grow allocate up to twice what they hold.
			alloctest.Bound{Base: 2*uint64(reserved) + 1<<20}.Check(t, 0, func() { _, _ = c.DecodeGuarded(body, tc.m, g) })
		})
	}
}
